"""Reads facts from the tables for `memorybus_providers.finding`.

This package gets a connection and the asker's scope, and writes nothing. The store, its erasure and
``meaning`` use it.
"""
