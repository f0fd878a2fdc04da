"""Checks of everything that could be wrong, each with its remedy, and a canary event end to end.

It reads from all layers below. A run leaves its canary in the log (with ``--deep`` four events) and
a note of when it came through. `memorybus doctor` shows the results.
"""
