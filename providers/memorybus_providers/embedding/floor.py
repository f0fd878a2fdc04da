"""How near texts are that have nothing to do with each other, which differs by model; pure.

Some models give such texts a cosine of 0.0 on average, others of 0.75. And the more facts are
compared with a question, the nearer comes one of them by chance. What is no nearer than that does
not answer it.
"""

import math
from typing import Final

import msgspec
import numpy as np

from memorybus_providers.embedding.embedder import Vectors

MARGIN = 1.0
"""What a fact must be above the nearest of as many unrelated ones, in standard deviations."""

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


class Chance(msgspec.Struct, frozen=True):
    """Cosines of texts that have nothing to do with each other: their mean, and their deviation."""

    mean: float
    deviation: float

    def floor(self, facts: int) -> float:
        """Return the cosine above which the nearest of so many facts is near not just by chance.

        Of n values that scatter normally the largest is expected at about sqrt(2 ln n) deviations.
        """
        largest = math.sqrt(2 * math.log(max(1, facts)))
        return min(HIGHEST, max(0.0, self.mean + (largest + MARGIN) * self.deviation))


def chance_of(vectors: Vectors) -> Chance:
    """Return how near the texts of a model are to each other by chance.

    Args:
        vectors: of `UNRELATED`, of length one.
    """
    near = (vectors @ vectors.T)[np.triu_indices(len(vectors), k=1)]
    return Chance(float(near.mean()), float(near.std()))
