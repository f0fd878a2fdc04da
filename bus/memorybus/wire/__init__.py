"""Envelopes as bytes: the codec, the steps that read older versions, and the header.

Only events, errors and queries enter. Whoever writes to the spool, the log or the archive, or
reads from them, uses it.
"""
