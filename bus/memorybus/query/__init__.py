"""Which events are wanted: a query, the ranges of numbers it covers, and the filter made of both.

These are pure values and functions that know events, but not where they lie. The archive, the
history and the commands that replay or rebuild use them.
"""
