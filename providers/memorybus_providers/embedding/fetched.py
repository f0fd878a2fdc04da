"""Makes vectors with a model that fastembed knows by its name; it is fetched once, at set-up."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from memorybus.errors import Unavailable

from memorybus_providers.embedding.embedder import Prompts, Vectors


class FetchedEmbedder:
    """Runs a model on one thread; what was not fetched is never fetched by it.

    Args:
        cache: where fastembed keeps the models that it fetched.
        prompts: what the model wants before texts, beside what fastembed adds.
    """

    def __init__(self, name: str, cache: Path, prompts: Prompts) -> None:
        self.model = prompts.known_by(f"fastembed {name}")
        self._name = name
        self._cache = cache
        self._prompts = prompts
        self._lock = threading.Lock()
        self._loaded: Any = None

    def embed(self, texts: Sequence[str], *, asked: bool = False) -> Vectors:
        """Return one vector for each text; see `Embedder.embed`."""
        given = self._prompts.before(texts, asked=asked)
        with self._lock:
            self._loaded = model = self._loaded or load(self._name, self._cache)
            vectors = model.query_embed(given) if asked else model.passage_embed(given)
            return np.array(list(vectors), dtype=np.float32)

    def close(self) -> None:
        """Forget the model."""
        with self._lock:
            self._loaded = None


def load(name: str, cache: Path, *, fetching: bool = False) -> Any:
    """Load a model; only if `fetching`, what is missing is fetched.

    Raises:
        ImportError: fastembed is not installed.
        Unavailable: fastembed does not know the model, it cannot be fetched, or it is not there.
    """
    from fastembed import TextEmbedding

    try:
        return TextEmbedding(
            name,
            cache_dir=str(cache),
            threads=1,
            providers=["CPUExecutionProvider"],
            local_files_only=not fetching,
        )
    except Exception as error:  # its libraries raise errors of many kinds
        problem = "cannot be fetched" if fetching else "is not on this host"
        remedy = "" if fetching else "; fetch it: memorybus provider setup"
        raise Unavailable(f"embedder: the model {name} {problem}: {error}{remedy}") from error
