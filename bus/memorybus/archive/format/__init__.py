"""The files of an archive: Parquet segments for any engine, and the manifest that names them.

Bytes and columns only: nothing here knows where a file lies. The parts of the archive read and
write through it.
"""
