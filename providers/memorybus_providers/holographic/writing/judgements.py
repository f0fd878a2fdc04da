"""Stores feedback on facts, helpful or not, under the names of the facts and apart from them.

Feedback and its fact may come from events of two order keys, and a rebuild may apply the feedback
first: it then waits for its fact. Judgements are only counted, so their order does not matter (G8).
"""

import sqlite3

from memorybus_providers.base import HookContext
from memorybus_providers.holographic.writing.sessions import Sessions
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.trust import trust_of

_ADD = """
insert into judgements(scope, fact, helpful, unhelpful) values (?, ?, ?, ?)
on conflict do update set helpful = helpful + excluded.helpful,
    unhelpful = unhelpful + excluded.unhelpful
returning helpful, unhelpful
"""
_SAID = """
select 1 from sessions join facts on facts.session = sessions.id
where sessions.scope = ? and mark = ? and seq is not null and facts.name = ? limit 1
"""
_KEPT = "select 1 from facts where scope = ? and seq is null and name = ? limit 1"


class SqliteJudgements:
    """Writes judgements, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        self._db = db
        self._places = places

    def add(self, fact: str, ctx: HookContext, *, helpful: bool) -> float | None:
        """Judge the fact of this name in the context's scope; return the trust in it.

        The result is None if there is no such fact; the judgement is kept for it. Pending
        utterances must have been flushed.
        """
        scope = self._places.get(ctx).scope
        counts = self._db.execute(_ADD, (scope, fact, int(helpful), int(not helpful))).fetchone()
        return trust_of(*counts) if self._exists(scope, fact) else None

    def _exists(self, scope: int, fact: str) -> bool:
        mark = facts.session_mark(fact)
        query, given = (_KEPT, (scope, fact)) if mark is None else (_SAID, (scope, mark, fact))
        return self._db.execute(query, given).fetchone() is not None
