"""Watches the log for a worker: new entries wake its lanes, and losses are reported."""
