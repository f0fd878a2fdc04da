"""A lane: one provider and one partition, its lease, its window, its parked keys.

The log, the history and the scripts enter; how a provider is called does not. Appliers work on
lanes.
"""
