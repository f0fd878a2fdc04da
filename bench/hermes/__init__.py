"""What the real Hermes Agent pays for memory, and what it loses without the bus.

Measured are its hooks, its turns, its exit, and the turns lost when it is killed. `run` runs these
parts; `reconcile` is run alone.
"""
