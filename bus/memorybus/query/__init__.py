"""Selects events: a query, ranges of numbers, and the filter that is made from both.

These are pure values and functions that know events, but not where they are stored. The archive,
the history and the commands that replay or rebuild use them.
"""
