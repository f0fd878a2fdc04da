"""Search by meaning, beside the words: vectors of facts, and the facts that are near a question.

Texts of facts and questions enter; their vectors come from an embedder that the option ``embedder``
names, a service or a model on disk, and are kept beside the facts in the same file. Only the
holographic provider uses it, and with that option alone: else nothing but ``options`` is imported.
"""
