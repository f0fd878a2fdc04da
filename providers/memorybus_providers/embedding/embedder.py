"""The interface of an embedder, which makes vectors of texts."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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


def at_length_one(vectors: Vectors) -> Vectors:
    """Return the vectors scaled to length one, so that a product is the cosine; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def embed_text(embedder: Embedder, text: str) -> Vector:
    """Return the vector of one text, at length one; raises what `Embedder.embed` raises."""
    vector: Vector = at_length_one(embedder.embed([text]))[0]
    return vector
