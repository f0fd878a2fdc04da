"""Workers as processes: how one is put together, its end, and the supervisor of several.

Everything of a worker is put together here. The command line starts it.
"""
