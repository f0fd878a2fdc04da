"""Chooses the embedder that a provider's options name."""

import os
from collections.abc import Sequence
from pathlib import Path

from memorybus.errors import Unavailable

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.embedder import Embedder, Prompts
from memorybus_providers.embedding.models import missing_libraries
from memorybus_providers.embedding.options import MeaningOptions, cache_of


def make_embedder(options: MeaningOptions, config: ProviderConfig) -> Embedder:
    """Return the embedder that the options name; nothing is requested or loaded yet.

    Raises:
        ImportError: a library that it needs is not installed.
        Unavailable: the environment variable with its key does not exist.
    """
    prompts = Prompts(options.embedder_question, options.embedder_text)
    if options.by_service:
        from memorybus_providers.embedding.service import ServiceEmbedder

        return ServiceEmbedder(
            options.embedder,
            options.embedder_model,
            prompts,
            _key(options.embedder_key),
            options.embedder_timeout,
            config.clock,
        )
    if name := options.fetched:
        _require(missing_libraries(("fastembed", "numpy")))
        from memorybus_providers.embedding.fetched import FetchedEmbedder

        return FetchedEmbedder(name, cache_of(config), prompts)
    _require(missing_libraries())
    from memorybus_providers.embedding.local import LocalEmbedder

    return LocalEmbedder(Path(options.embedder).expanduser(), options.embedder_model, prompts)


def _require(missing: Sequence[str]) -> None:
    if missing:
        raise ModuleNotFoundError(f"No module named {missing[0]!r}", name=missing[0])


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
