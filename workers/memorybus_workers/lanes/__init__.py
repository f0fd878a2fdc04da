"""A lane is one provider and one partition, with its lease, its window and its parked keys.

This package uses the log, the history and the scripts, and does not know how a provider is called.
Appliers work on lanes.
"""
