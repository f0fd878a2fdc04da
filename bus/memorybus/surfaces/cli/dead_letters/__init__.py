"""The commands for dead letters: showing them, retrying, editing and discarding them.

What they do is in `memorybus.operations.dead_letters`.
"""
