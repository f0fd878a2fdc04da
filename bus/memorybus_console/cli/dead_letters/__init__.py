"""The commands that show, retry, edit and discard dead letters.

What they do is in `memorybus_console.operations.dead_letters`.
"""
