"""Dead letters: events that a provider refused finally, and operators' requests about them (G6).

This package reads records and writes requests; only a lane's owner carries requests out. Workers
and `memorybus dlq` use it.
"""
