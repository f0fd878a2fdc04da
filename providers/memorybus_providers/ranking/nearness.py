"""What the meaning of a fact is worth beside its words; pure.

Both are amounts of one measure, the rarity of the question's words. Where one fact has all of them,
words decide; where words of the question are in no fact that has the others, what is near in
meaning stands in for those.
"""

from collections.abc import Iterable, Mapping

WORTH = 2.0
"""What a fact that means exactly the same gains, times the rarity of the words that are lacking."""

STEEPNESS = 2.0
"""The power of nearness: what is hardly near gains next to nothing."""


def meaning_amounts(
    near: Mapping[int, float], rarity: Mapping[str, float], held: Iterable[Iterable[str]]
) -> dict[int, float]:
    """Return what each near fact gains.

    Args:
        near: how near a fact's meaning is to the question's, from 0 to 1.
        rarity: of the question's words.
        held: which of these words each fact has that has any.
    """
    most = max((sum(rarity[word] for word in words) for words in held), default=0.0)
    lacking = sum(rarity.values()) - most
    return {fact: WORTH * lacking * nearness**STEEPNESS for fact, nearness in near.items()}
