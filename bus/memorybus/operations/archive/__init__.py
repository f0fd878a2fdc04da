"""What commands do with the archive: list, verify, import another one, repair.

The archive and the client enter. Only commands call it.
"""
