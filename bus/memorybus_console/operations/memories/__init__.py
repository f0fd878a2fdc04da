"""Lets people browse, correct and delete memories.

Nothing here changes a provider directly: a correction or deletion is an event like any other.
"""
