"""The interface of an embedder, which makes vectors of texts."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Vectors = NDArray[np.float32]  # a matrix with one vector in each row


class Prompts(msgspec.Struct, frozen=True):
    """What a model wants before a question, and before a fact."""

    question: str = ""
    fact: str = ""

    def before(self, texts: Sequence[str], *, asked: bool) -> list[str]:
        """Return questions, if they are `asked`, or facts as the model wants them."""
        prompt = self.question if asked else self.fact
        return [f"{prompt}{text}" for text in texts]

    def known_by(self, model: str) -> str:
        """Return the name under which vectors are stored: their model, and the prompt of facts."""
        return f"{model} after {self.fact!r}" if self.fact else model


class Embedder(Protocol):
    """Makes vectors of texts; several threads may call it."""

    @property
    def model(self) -> str:
        """The name under which vectors are stored; only vectors of one name are compared.

        Raises:
            Unavailable: it cannot tell now.
        """
        ...

    def embed(self, texts: Sequence[str], *, asked: bool = False) -> Vectors:
        """Return one vector for each text, in order, all of one size.

        Args:
            asked: whether they are questions.

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


def embed_text(embedder: Embedder, text: str, *, asked: bool = False) -> Vector:
    """Return the vector of one text, at length one; raises what `Embedder.embed` raises."""
    vector: Vector = at_length_one(embedder.embed([text], asked=asked))[0]
    return vector
