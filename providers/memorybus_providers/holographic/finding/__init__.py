"""Reads facts from the file for `memorybus_providers.finding`.

It gets the database and the scope of whoever asks, and writes nothing. The store and ``meaning``
use it.
"""
