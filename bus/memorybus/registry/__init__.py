"""Provider instances, workers, lanes, tools and homes, as Redis holds them.

This package reads and writes these records, and does not decide how they are used. Workers register
themselves; commands read and change what is registered.
"""
