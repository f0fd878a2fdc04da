"""The graph of sessions, as pure functions: which one continues which, and who owns each.

It imports only events and ids, and reads or writes nothing. Code that orders, shows or filters
sessions uses it.
"""
