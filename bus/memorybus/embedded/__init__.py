"""A Redis server of our own in the data directory, for users who have no other.

It needs only settings and a server binary. `memorybus up`, the demo and the tests start it.
"""
