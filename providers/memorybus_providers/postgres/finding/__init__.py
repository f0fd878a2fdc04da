"""Reads facts from the tables, as `memorybus_providers.finding` asks for them.

A connection and the scope of the asker enter; nothing is written. The store, its erasure and
``meaning`` use it.
"""
