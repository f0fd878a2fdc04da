"""Where an archive's files lie: a directory, or an object store, behind one small interface.

Names and bytes enter, and nothing of their meaning. Only the archive uses it.
"""
