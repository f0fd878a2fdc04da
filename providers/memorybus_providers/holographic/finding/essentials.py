"""What matters most of a person, where nothing is asked: what was kept, then what was said last."""

import sqlite3
from collections.abc import Iterable

from memorybus_providers.base import RecallScope
from memorybus_providers.holographic.finding.rows import FACT, LATEST, SCOPES, fact_of, limits_of
from memorybus_providers.ranking.ranking import Fact, Scored

KEPT = 100
"""Kept facts that are looked at, the newest (G10)."""

SAID = 10
"""Utterances that are looked at, the newest of the newest sessions (G10)."""

_SESSIONS = 3
_ESSENTIALS = f"""
{FACT} where facts.id in (
    select id from (
        select id from facts where scope in ({SCOPES}) and seq is null and at <= :known_by
        order by at desc limit {KEPT}
    )
    union
    select id from (
        select facts.id from facts
        where seq is not null and kind = 'user' and at <= :known_by and session in (
            select id from sessions where scope in ({SCOPES}) order by id desc limit {_SESSIONS}
        ) order by at desc, seq desc limit {SAID}
    )
)
"""  # noqa: S608  constants of our own

_ORDER = {"user-store": 0, "memory": 1, "note": 2}
"""The person's profile stands first, then the agent's notes for itself, then the model's."""


def essentials(
    db: sqlite3.Connection, scope: RecallScope, as_of: int | None = None
) -> list[Scored]:
    """Return what matters most within a scope, best first; empty if nothing is known.

    Args:
        db: what it reads through.
        scope: whose facts.
        as_of: only what was known then, milliseconds; None for now.
    """
    given = {**limits_of(scope), "known_by": LATEST if as_of is None else as_of}
    return ordered(fact_of(*row) for row in db.execute(_ESSENTIALS, given))


def ordered(facts: Iterable[Fact]) -> list[Scored]:
    """Return facts in the order in which they matter: by kind, by trust, the newest first."""
    last = len(_ORDER)
    found = sorted(facts, key=lambda f: (_ORDER.get(f.kind, last), -f.trust, -f.at, -f.id))
    return [Scored(fact, 1 / place) for place, fact in enumerate(found, start=1)]
