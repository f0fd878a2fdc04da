"""Spans that tests look at: kept in this process, or sent to a collector."""
