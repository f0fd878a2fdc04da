"""Writes feedback on facts, under the names of the facts and apart from them.

Feedback and its fact may come from events of two order keys, and a rebuild may apply the feedback
first: it then waits for its fact. Judgements are only counted, so their order does not matter (G8).
"""

from memorybus_providers.base import HookContext
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.writing.places import Places
from memorybus_providers.ranking.trust import trust_of

_ADD = """
insert into judgements as known values (%s, %s, %s, %s) on conflict(scope, fact) do update
set helpful = known.helpful + excluded.helpful, unhelpful = known.unhelpful + excluded.unhelpful
returning helpful, unhelpful
"""
_FACT_EXISTS = "select 1 from facts where scope = %s and name = %s limit 1"


class PostgresJudgements:
    """Writes judgements in the transaction that `db` has open."""

    def __init__(self, db: Connection, places: Places) -> None:
        self._db = db
        self._places = places

    def add(self, fact: str, ctx: HookContext, *, helpful: bool) -> float | None:
        """Judge the fact of this name in the context's scope; return the trust in it.

        The result is None if there is no such fact; the judgement is kept for it.
        """
        scope = self._places.get(self._db, ctx).scope
        counts = self._db.execute(_ADD, (scope, fact, int(helpful), int(not helpful))).fetchone()
        there = self._db.execute(_FACT_EXISTS, (scope, fact)).fetchone()
        return trust_of(*counts) if counts and there else None
