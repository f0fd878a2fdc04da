"""The plugin in a Hermes home: put in, taken out, set up, and whether it works.

Hermes's configuration enters, and no session. `memorybus hermes` and the plugin use its two
modules, `install` (which writes files) and `status` (which only looks), and nothing else does.
"""
