"""The log's sealed past outside Redis, written once and read as the log would be (G7).

The log's entries and a place for files enter; the history and the lanes do not. Archivers write
it, and the history reads it.
"""
