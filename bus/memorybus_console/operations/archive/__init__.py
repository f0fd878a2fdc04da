"""What commands do with the archive: seal, list, verify, export, import another one.

It uses the archive and the client. Only commands use it.
"""
