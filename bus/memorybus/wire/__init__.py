"""Envelopes as bytes: the codec, the upcasts that read older versions, and the header.

It imports only ``events``, ``errors``, ``query`` and ``msgspec_types``. Code that writes to the
spool, the log or the archive, or reads from them, uses it.
"""
