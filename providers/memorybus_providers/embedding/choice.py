"""Chooses the embedder that a provider's options name."""

import os
from importlib.util import find_spec

from memorybus.errors import Unavailable

from memorybus_providers.embedding.embedder import Embedder
from memorybus_providers.embedding.options import MeaningOptions


def make_embedder(options: MeaningOptions) -> Embedder:
    """Return the embedder that the options name; nothing is requested or loaded yet.

    Raises:
        ImportError: a library that it needs is not installed.
        Unavailable: the environment variable with its key does not exist.
    """
    if options.by_service:
        from memorybus_providers.embedding.service import ServiceEmbedder

        key = _key(options.embedder_key)
        return ServiceEmbedder(
            options.embedder, options.embedder_model, key, options.embedder_timeout
        )
    if find_spec("model2vec") is None:  # only looked up here, since the import takes a second
        raise ModuleNotFoundError("No module named 'model2vec'", name="model2vec")
    from memorybus_providers.embedding.static import StaticEmbedder

    return StaticEmbedder(options.embedder, options.embedder_model)


def _key(variable: str) -> str:
    """Return the value of the environment variable that the options name."""
    if not variable:
        return ""
    if variable not in os.environ:
        raise Unavailable(
            f"embedder_key names the environment variable {variable}, which this process lacks; "
            "set it where the workers run"
        )
    return os.environ[variable]
