"""The log's past moved into the archive by one owner for each partition (G7).

Leases, the log and the archive enter. Each worker runs one archiver.
"""
