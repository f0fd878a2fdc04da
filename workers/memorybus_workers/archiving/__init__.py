"""Moves the log's past into the archive, with one owner for each partition (G7).

This package imports leases, the log and the archive. Each worker runs one archiver.
"""
