"""Texts are cleaned before they are written, fenced when recalled, masked when shown.

Pure functions of strings, which know of events at most. Everybody who writes or shows a text
uses them, for every text is hostile data.
"""
