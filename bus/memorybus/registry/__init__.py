"""Provider instances, workers, lanes, tools and homes: their records, most of which Redis holds.

This package reads and writes these records, and holds the rules that keep them consistent.
Workers register themselves; commands read and change what is registered.
"""
