"""Leaves out conclusions that only restate what was found with them; pure.

Both would take room and tell the same, and what was said is the evidence. So a conclusion stands if
it has a word of the question that its sources lack, or if they were not found: archived, or of
another time. One that is news lends its source its place, and what was true before.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from memorybus_providers.ranking.facts import CONCLUSION
from memorybus_providers.ranking.ranking import Scored

Tells = Callable[[Collection[str], Collection[str]], bool]
"""Whether some events may well contain some stems, although nothing found shows it."""


def restated(
    found: Sequence[Scored], sources: Mapping[int, Collection[str]], tell: Tells
) -> dict[int, Scored | None]:
    """Return the conclusions that only restate, by row: each with the best of its sources found.

    Args:
        sources: the events from which conclusions came, by the conclusions' rows.
    """
    said: dict[str, list[Scored]] = {}
    for scored in found:
        if scored.fact.kind != CONCLUSION:
            said.setdefault(scored.fact.event, []).append(scored)
    best: dict[int, Scored | None] = {}
    for scored in found:
        if scored.fact.kind == CONCLUSION:
            events = sources.get(scored.fact.id, ())
            told = [source for event in events for source in said.get(event, ())]
            missing = set(scored.terms).difference(*(source.terms for source in told))
            if tell(events, missing) if missing else told:
                best[scored.fact.id] = max(told, key=_by_terms(scored), default=None)
    return best


def lowered(found: Sequence[Scored], told: Mapping[int, Scored | None]) -> list[Scored]:
    """Return what was found, best first; what only restates is worth no more than its source."""
    worth = [
        msgspec.structs.replace(scored, score=min(scored.score, source.score))
        if (source := told.get(scored.fact.id))
        else scored
        for scored in found
    ]
    return sorted(worth, key=lambda one: -one.score)


def without_restatements(
    found: Sequence[Scored], told: Mapping[int, Scored | None]
) -> list[Scored]:
    """Return what was found, each once; the source of news stands in its place."""
    given: dict[int, Scored] = {}
    for scored in found:
        if scored.fact.id not in told:
            given.setdefault(scored.fact.id, scored)
        elif scored.before and not scored.until:
            source = told[scored.fact.id]
            marks = {"score": scored.score, "before": scored.before}
            stands = msgspec.structs.replace(source, **marks) if source else scored
            given.setdefault(stands.fact.id, stands)
    return list(given.values())


def _by_terms(conclusion: Scored) -> Callable[[Scored], tuple[int, float]]:
    return lambda source: (len({*source.terms} & {*conclusion.terms}), source.score)
