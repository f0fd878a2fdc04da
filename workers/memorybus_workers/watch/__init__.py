"""Watches the log for a worker: new entries wake its lanes, and losses are reported.

This package imports the log and its health. Each worker has one `Tail` and one `LogWatch`.
"""
