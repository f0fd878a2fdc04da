"""Chooses the embedder that a provider's options name."""

import os
from pathlib import Path

from memorybus.errors import Unavailable

from memorybus_providers.embedding.embedder import Embedder, Prompts
from memorybus_providers.embedding.models import missing_libraries
from memorybus_providers.embedding.options import MeaningOptions


def make_embedder(options: MeaningOptions) -> Embedder:
    """Return the embedder that the options name; nothing is requested or loaded yet.

    Raises:
        ImportError: a library that it needs is not installed.
        Unavailable: the environment variable with its key does not exist.
    """
    prompts = Prompts(options.embedder_question, options.embedder_text)
    if options.by_service:
        from memorybus_providers.embedding.service import ServiceEmbedder

        key = _key(options.embedder_key)
        return ServiceEmbedder(
            options.embedder, options.embedder_model, prompts, key, options.embedder_timeout
        )
    if missing := missing_libraries():
        raise ModuleNotFoundError(f"No module named {missing[0]!r}", name=missing[0])
    from memorybus_providers.embedding.local import LocalEmbedder

    return LocalEmbedder(Path(options.embedder).expanduser(), options.embedder_model, prompts)


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
