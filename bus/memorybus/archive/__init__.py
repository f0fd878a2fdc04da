"""The log's sealed past outside Redis. It is written once, and read as the log is read (G7)."""
