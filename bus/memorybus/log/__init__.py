"""The log in Redis: a stream per partition, its entries, its producers, and whether it is whole.

Keys, scripts and the codec enter; the archive and the lanes do not. The archive, the history,
the workers and the health of the system read it.
"""
