"""Finds what matters most about a person if nothing is asked: kept facts, then the last words."""

from collections.abc import Iterable

from memorybus_providers.base import RecallScope
from memorybus_providers.finding.source import LATEST_STORABLE, FactSource, View
from memorybus_providers.ranking.ranking import Fact, Scored

_ORDER = {"user-store": 0, "memory": 1, "note": 2}
"""The person's profile comes first, then the agent's notes for itself, then the model's."""


def essentials(source: FactSource, scope: RecallScope, as_of: int | None = None) -> list[Scored]:
    """Return what matters most within a scope, best first; empty if nothing is known.

    Args:
        source: reads the facts.
        scope: whose facts.
        as_of: only what was known at this time, milliseconds; None for now.
    """
    view = View(scope, known_by=LATEST_STORABLE if as_of is None else as_of)
    return order_by_importance(source.essentials(view))


def order_by_importance(facts: Iterable[Fact]) -> list[Scored]:
    """Return facts in the order of their importance: by kind, by trust, the newest first."""
    last = len(_ORDER)
    found = sorted(facts, key=lambda f: (_ORDER.get(f.kind, last), -f.trust, -f.at, -f.id))
    return [Scored(fact, 1 / place) for place, fact in enumerate(found, start=1)]
