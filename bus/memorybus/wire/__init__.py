"""Envelopes as bytes: the codec, the upcasts that read older versions, and the header."""
