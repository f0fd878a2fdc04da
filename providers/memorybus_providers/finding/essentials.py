"""What matters most of a person, where nothing is asked: what was kept, then what was said last."""

from collections.abc import Iterable

from memorybus_providers.base import RecallScope
from memorybus_providers.finding.source import LATEST, FactSource, View
from memorybus_providers.ranking.ranking import Fact, Scored

_ORDER = {"user-store": 0, "memory": 1, "note": 2}
"""The person's profile stands first, then the agent's notes for itself, then the model's."""


def essentials(source: FactSource, scope: RecallScope, as_of: int | None = None) -> list[Scored]:
    """Return what matters most within a scope, best first; empty if nothing is known.

    Args:
        source: what it reads through.
        scope: whose facts.
        as_of: only what was known then, milliseconds; None for now.
    """
    view = View(scope, known_by=LATEST if as_of is None else as_of)
    return order_by_importance(source.essentials(view))


def order_by_importance(facts: Iterable[Fact]) -> list[Scored]:
    """Return facts in the order in which they matter: by kind, by trust, the newest first."""
    last = len(_ORDER)
    found = sorted(facts, key=lambda f: (_ORDER.get(f.kind, last), -f.trust, -f.at, -f.id))
    return [Scored(fact, 1 / place) for place, fact in enumerate(found, start=1)]
