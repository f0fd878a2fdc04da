"""Writes into the tables what was said, kept, judged and corrected, in the lane's transaction.

A connection in a transaction and an event's parts enter; no question does. The store and its
erasure use it, and ``finding`` for the keys of scopes.
"""
