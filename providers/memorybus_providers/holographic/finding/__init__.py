"""Reads facts from the file, as `memorybus_providers.finding` asks for them.

The database and the scope of the asker enter; nothing is written. The store and ``meaning`` use
it.
"""
