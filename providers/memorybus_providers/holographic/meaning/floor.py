"""How near unrelated texts are to each other, which differs from model to model; pure.

Some models give texts that have nothing in common a cosine of 0.0, others of 0.75. What is no
nearer to a question than such texts are to each other does not answer it.
"""

from typing import Final

import numpy as np

from memorybus_providers.holographic.meaning.embedder import Vectors

DEVIATIONS = 3.0
"""How far above their mean nearness is something, in standard deviations."""

HIGHEST = 0.95

UNRELATED: Final = (
    "The ferry leaves every morning at seven.",
    "Boil lentils until soft, then add salt.",
    "Her violin teacher moved away last winter.",
    "Interest rates rose by a quarter point.",
    "Hedgehogs sleep under our woodpile.",
    "Restart that server after installing updates.",
    "My brother broke his ankle while skiing.",
    "Medieval monks copied manuscripts in candlelight.",
    "Which colour should this kitchen be painted?",
    "Photosynthesis turns sunlight into sugar.",
    "He lost two chess games against someone younger.",
    "Please sign each page of your rental contract.",
)
"""Sentences about nothing in common, and without a common word."""


def floor_of(vectors: Vectors) -> float:
    """Return the cosine above which two texts have something to do with each other.

    Args:
        vectors: of `UNRELATED`, of length one.
    """
    upper = np.triu_indices(len(vectors), k=1)
    near = (vectors @ vectors.T)[upper]
    return float(min(HIGHEST, max(0.0, near.mean() + DEVIATIONS * near.std())))
