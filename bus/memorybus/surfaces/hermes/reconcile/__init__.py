"""What Hermes has stored and the bus never got, found and published under ids of its own.

Stored transcripts, memory files and the history enter. `memorybus hermes reconcile` calls it.
"""
