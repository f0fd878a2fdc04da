"""A worker among the others: it shows that it lives and takes its share of the lanes.

Heartbeats, homes and leases enter; the share is computed by a pure function. Each worker has one.
"""
