"""Searches by meaning in addition to words: the vectors of facts, and the facts near a question.

An embedder, which is a service or a model on disk, makes vectors from the texts of facts and
questions; the option ``embedder`` names it. The vectors of facts are stored in the same file as the
facts. Only the holographic provider uses this package, and it imports it only with that option.
"""
