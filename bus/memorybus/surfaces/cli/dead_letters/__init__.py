"""The commands that show, retry, edit and discard dead letters.

What they do is in `memorybus.operations.dead_letters`.
"""
