"""Two rankings made one, by places and not by scores, which have no common measure; pure."""

from collections.abc import Sequence

import msgspec

from memorybus_providers.holographic.ranking import Scored

K = 60.0
"""How little the very first places count for more than the next: the usual constant."""

MEANING = 1.0
"""What a place in the ranking by meaning counts, beside 1 for one in the ranking by words."""


def fused(words: Sequence[Scored], meaning: Sequence[Scored]) -> list[Scored]:
    """Return what either ranking has, best first: reciprocal places, summed.

    A place that only one of two facts has is worth more than a worse place of both; of equals the
    one that words found stands first.
    """
    amounts: dict[int, dict[str, float]] = {}
    for name, weight, ranking in (("words", 1.0, words), ("meaning", MEANING, meaning)):
        for place, scored in enumerate(ranking, start=1):
            amounts.setdefault(scored.fact.id, {})[name] = weight / (K + place)
    near = {scored.fact.id: scored.meaning for scored in meaning}
    by_fact = {scored.fact.id: scored for scored in (*meaning, *words)}
    found = [
        msgspec.structs.replace(
            scored, score=sum(amounts[fact].values()), parts=amounts[fact], meaning=near.get(fact)
        )
        for fact, scored in by_fact.items()
    ]
    return sorted(found, key=lambda scored: (-scored.score, -scored.fact.id))
