"""The log in Redis: a stream per partition, its entries, its producers, and whether it is whole.

This package uses keys, scripts, the codec and the spool, and knows nothing of the archive and the
lanes. The archive, the history, the workers and the health checks read the log through it.
"""
