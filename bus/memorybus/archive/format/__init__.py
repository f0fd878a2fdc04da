"""The files of an archive: Parquet segments for any engine, and the manifest that names them."""
