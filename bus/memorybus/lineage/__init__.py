"""The graph of sessions, as pure functions: which session continues which, and who owns each.

This package imports only ``events`` and ``errors``, and neither reads nor writes anything. Code
that orders, shows or filters sessions uses it.
"""
