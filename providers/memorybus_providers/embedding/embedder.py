"""What makes vectors of texts: the protocol, and which one the options choose."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Protocol

import numpy as np
from memorybus.errors import Unavailable
from numpy.typing import NDArray

from memorybus_providers.embedding.options import MeaningOptions

Vector = NDArray[np.float32]
Vectors = NDArray[np.float32]
"""A matrix with one vector in each row."""


class Embedder(Protocol):
    """Makes vectors of texts; several threads may call it."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text, in order, all of one size.

        Raises:
            Permanent: it refuses these texts.
            Unavailable: it cannot answer now.
        """
        ...

    def close(self) -> None:
        """Release connections."""
        ...


def make_embedder(options: MeaningOptions) -> Embedder:
    """Return the embedder that the options name; nothing is asked or loaded yet.

    Raises:
        ImportError: what it needs is not installed.
        Unavailable: the variable that is to hold its key does not exist.
    """
    if options.by_service:
        from memorybus_providers.embedding.service import ServiceEmbedder

        key = _key(options.embedder_key)
        return ServiceEmbedder(
            options.embedder, options.embedder_model, key, options.embedder_timeout
        )
    if find_spec("model2vec") is None:  # imported when it is first asked: that takes a second
        raise ModuleNotFoundError("No module named 'model2vec'", name="model2vec")
    from memorybus_providers.embedding.static import StaticEmbedder

    return StaticEmbedder(options.embedder, options.embedder_model)


def at_length_one(vectors: Vectors) -> Vectors:
    """Return the vectors at length one, so that a product is the cosine; a zero one stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def embed_text(embedder: Embedder, text: str) -> Vector:
    """Return the vector of one text, at length one; raises what `Embedder.embed` raises."""
    vector: Vector = at_length_one(embedder.embed([text]))[0]
    return vector


def _key(variable: str) -> str:
    """Return the value of the environment variable that the options name."""
    if not variable:
        return ""
    if variable not in os.environ:
        raise Unavailable(
            f"embedder_key names the environment variable {variable}, which this process lacks"
        )
    return os.environ[variable]
