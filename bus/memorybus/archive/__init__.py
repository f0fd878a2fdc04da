"""The log's sealed past outside Redis. It is written once, and read as the log is read (G7).

This package may import the log's entries, but neither the history nor the workers' lanes. Archivers
write the archive, and the history reads it.
"""
