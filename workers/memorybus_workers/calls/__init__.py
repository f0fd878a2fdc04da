"""Keeps track of calls into a provider: which call runs, what failed, and what to try next.

This package knows no lanes, only the keys of their leases. It uses Redis where all workers count
together (`allowance`). Lanes, appliers and hosts use it.
"""
