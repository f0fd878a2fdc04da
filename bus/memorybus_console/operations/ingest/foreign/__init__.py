"""Turns exports of other memory systems into events: one pure module for each source.

It gets bytes or pages of JSON. A record that is not as its source documents it is refused and
reported with its place; the other records are used. These files come from programs that nobody here
controls.
"""
