"""What a worker sees of the log beside its work: new entries, and losses.

The log and its health enter. Each worker has one of each.
"""
