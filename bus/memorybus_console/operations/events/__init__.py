"""Searches events by words and owners, and finds out what became of one event at each provider.

It reads the history and the lanes, and changes nothing. Commands and the page use it.
"""
