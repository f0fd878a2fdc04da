"""Texts are cleaned before they are written, fenced when they are recalled, masked when shown.

These are pure functions of strings; the package imports nothing but events. All code that writes or
shows a text uses them, since every text is hostile data.
"""
