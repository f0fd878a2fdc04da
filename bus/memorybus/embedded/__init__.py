"""A Redis server of our own in the data directory, for users who have no other.

It needs settings and a server binary, and imports nothing above them. `memorybus up`, the demo and
the tests start it.
"""
