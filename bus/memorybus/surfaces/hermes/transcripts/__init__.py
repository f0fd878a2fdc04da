"""Hermes's stored conversations: its `state.db`, and the turns in it.

It reads and never writes. The plugin and the reconciliation use it.
"""
