"""Consumers written by hand, without the bus: what its figures are compared with.

Each one runs as a process of its own on the log of a measurement. `runs` starts them and says how
fast they were together.
"""
