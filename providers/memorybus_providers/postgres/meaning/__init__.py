"""Searches by meaning in addition to words: finds facts near a question by vectors in pgvector.

Only an instance with the option ``embedder`` imports it; the server needs the extension ``vector``
(0.7 or later, for `halfvec`). Small scopes are compared exactly, by the index of their scope. In
large ones the planner may choose the graph (HNSW), which is searched until enough facts of the
scope are found (``hnsw.iterative_scan``, from 0.8 on).
"""
