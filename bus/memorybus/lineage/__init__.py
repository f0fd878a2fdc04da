"""Which session continues which, and whose each one is: the graph of sessions, as pure functions.

It imports only events and ids, and reads or writes nothing. Code that orders, shows or filters
sessions uses it.
"""
