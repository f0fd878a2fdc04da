"""Builds a provider's state again from history, next to the live one; compares and swaps them.

It uses copies and their generations. Commands and the page use it.
"""
