"""Recorded conversations published as an agent would have, no faster than the log takes them.

Files and the client enter. `memorybus ingest`, the import of archives and Hermes's
reconciliation use it.
"""
