"""Makes vectors of texts with a service or a local model, and remembers those of questions.

Stores of vectors use this package: ``vectors`` says what they do, and ``backfill`` fills them. It
stores no vectors itself. numpy and model libraries are imported when an embedder is chosen, since
most processes have none.
"""
