"""Moves the log's past into the archive, with one owner for each partition (G7).

Leases, the log and the archive enter. Each worker runs one archiver.
"""
