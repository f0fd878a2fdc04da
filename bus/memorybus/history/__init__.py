"""Reads archive and log as one ordered sequence, forward and backward.

Sealed events come from the archive and the others from Redis; a reader cannot tell the difference.
Lanes that fell behind read here, and so does every command about the past.
"""
