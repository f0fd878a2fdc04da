"""Moves the log's past into the archive, with one owner for each partition (G7)."""
