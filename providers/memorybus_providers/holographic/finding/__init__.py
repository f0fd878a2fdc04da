"""Reads facts from the file, as `memorybus_providers.finding` asks for them.

The database and the scope of the asker enter; nothing is written. The store, its erasure and
``meaning`` use it, and ``writing`` for which rows are a scope's.
"""
