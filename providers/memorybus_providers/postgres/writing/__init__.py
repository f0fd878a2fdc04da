"""Writes into the tables what was said, kept, judged and corrected, in the lane's transaction.

It gets a connection with an open transaction and the parts of an event. The store and its erasure
use it, and ``finding`` for the keys of scopes.
"""
