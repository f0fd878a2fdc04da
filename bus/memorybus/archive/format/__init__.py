"""The files of an archive: Parquet segments for any engine, and the manifest that names them.

This package handles bytes and columns only; where a file lies, the rest of the archive knows.
"""
