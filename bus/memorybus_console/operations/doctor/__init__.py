"""Checks everything that could be wrong, names a remedy for each problem, and sends a canary.

It reads from all layers below. A run leaves its canary in the log (with ``--deep`` four events) and
a note of when it arrived. `memorybus doctor` shows the results.
"""
