"""Measures how near unrelated texts are to each other, which differs by model; pure.

Some models give such texts a cosine of 0.0 on average, others of 0.75. So it is measured, with
sentences that are plainly unrelated.
"""

from typing import Final

import numpy as np

from memorybus_providers.embedding.embedder import Vectors

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
"""Sentences that have neither a topic nor a word in common."""


def baseline_of(vectors: Vectors) -> float:
    """Return the mean cosine of texts that have nothing in common.

    Args:
        vectors: the vectors of `UNRELATED`, of length one.
    """
    return float((vectors @ vectors.T)[np.triu_indices(len(vectors), k=1)].mean())
