"""The files of an archive: Parquet segments for any engine, and the manifest that names them.

This package handles bytes and columns only. Only the rest of the archive knows where a file lies.
"""
