"""Checks of everything that could be wrong, each with its remedy, and a canary event end to end.

It reads from all layers below, and leaves nothing behind. `memorybus doctor` shows the results.
"""
