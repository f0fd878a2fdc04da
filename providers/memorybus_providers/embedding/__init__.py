"""Texts as vectors: from a service or a local model, asked in batches and remembered for questions.

Stores of vectors use it (``vectors`` says what they do, ``filler`` what is done for them); it
stores none itself. numpy and model libraries are imported when an
embedder is chosen, since most processes have none.
"""
