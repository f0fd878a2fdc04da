"""Texts are cleaned before they are written, fenced when they are recalled, masked when shown."""
