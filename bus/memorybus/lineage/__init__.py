"""Which session goes on in which, and whose each one is: the graph of sessions, as pure functions.

Only events and ids may enter; nothing here reads or writes anything. Everybody who orders,
shows or filters sessions uses it.
"""
