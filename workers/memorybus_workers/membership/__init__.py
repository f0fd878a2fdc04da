"""Makes a worker known to the others: it shows that it lives and takes its share of the lanes.

This package imports heartbeats, homes and leases; a pure function computes the share.
"""
