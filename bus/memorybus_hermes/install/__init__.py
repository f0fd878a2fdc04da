"""Installs, removes and configures the plugin in a Hermes home, and reports whether it works.

This package reads Hermes's configuration and no sessions. `install` writes files; `status` and
`previous`, which finds the memory providers configured so far, only read. Only `memorybus hermes`
and the plugin use these modules.
"""
