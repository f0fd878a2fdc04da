"""Texts are cleaned before they are written, fenced when recalled, masked when shown.

These are pure functions of strings that import events at most. All code that writes or shows a text
uses them, since every text is hostile data.
"""
