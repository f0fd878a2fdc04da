"""Memories as people handle them: browsed, corrected and deleted.

Nothing here changes a provider directly: a correction or deletion is an event like any other.
"""
