"""Reads facts from the tables, as `memorybus_providers.finding` asks for them.

This package gets a connection and the asker's scope, and writes nothing. The store, its erasure and
``meaning`` use it.
"""
