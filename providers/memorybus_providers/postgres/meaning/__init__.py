"""Searches by meaning in addition to words: vectors of facts in pgvector, facts near a question.

Only an instance with the option ``embedder`` imports it; the server needs the extension ``vector``
(0.7 or later, for `halfvec`). Small scopes are compared exactly, by the index of their scope; in
large ones the planner may choose the graph (HNSW), which goes on until it has enough of the scope
(``hnsw.iterative_scan``, from 0.8 on).
"""
