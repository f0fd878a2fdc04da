"""Publishes recorded conversations as an agent would have, no faster than the log takes them.

It uses files and the client. `memorybus ingest`, the import of archives and Hermes's reconciliation
use it.
"""
