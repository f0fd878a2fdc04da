"""Writes into the file what was said, kept, judged and corrected, in the lane's transaction.

The open database and an event's parts enter; no question does. Only the store uses it, and
``finding`` for the rows of corrections and former entries.
"""
