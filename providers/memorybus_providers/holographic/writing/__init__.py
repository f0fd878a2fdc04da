"""Writes into the file what was said, kept, judged and corrected, in the lane's transaction.

It gets the open database and the parts of an event. Only the store uses it, and ``finding`` for the
rows of corrections and former entries.
"""
