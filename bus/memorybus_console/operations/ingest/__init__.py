"""Publishes recorded conversations, exported events and the memories of other systems.

It uses files and the client. `memorybus ingest`, the import of archives and Hermes's reconciliation
use it.
"""
