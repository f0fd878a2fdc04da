"""Where an archive's files lie: a directory, or an object store, behind one small interface.

This package handles names and bytes, and knows nothing of their meaning. Only the archive uses it.
"""
