"""A Redis server of our own in the data directory, for those who have installed nothing else.

It needs settings and a server binary, and nobody above it. `memorybus up`, the demo and the
tests start it.
"""
