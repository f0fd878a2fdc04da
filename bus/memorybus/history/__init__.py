"""Archive and log read as one ordered sequence, forward and backward.

What is sealed comes from the archive and the rest from Redis; a reader cannot tell the difference.
Lanes that fell behind and every command of history read it.
"""
