"""Workers as processes: how a worker is put together, how it ends, and who supervises several.

This package imports all other parts of a worker. The command line starts it.
"""
