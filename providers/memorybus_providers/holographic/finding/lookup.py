"""Facts by what they hold, by who said them, by their place: lists, where `recall` answers."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from memorybus_providers.base import RecallScope
from memorybus_providers.holographic.finding.rows import (
    FACT,
    LATEST,
    SCOPES,
    asked,
    fact_of,
    limits_of,
)
from memorybus_providers.language.query import holding
from memorybus_providers.ranking.facts import clean
from memorybus_providers.ranking.ranking import Fact

MOST = 500
"""Facts that one look returns at most, the newest (G10)."""

_NEWEST = "order by facts.at desc, facts.id desc limit :most"
_HOLDING = f"""
{FACT} where facts.id in (
    select rowid from facts_fts where facts_fts match :match order by rowid desc limit :reach
) and facts.scope in ({SCOPES}) and facts.at <= :at {_NEWEST}
"""  # noqa: S608  constants of our own
_SAID_BY = f"""
{FACT} where facts.scope in ({SCOPES}) and facts.seq is not null and facts.speaker in (
    select name from entities where kind = 'speaker' and scope in ({SCOPES})
        and word in (select value from json_each(:words))
) {_NEWEST}
"""  # noqa: S608
_KEPT = f"""
{FACT} where facts.scope in ({SCOPES}) and facts.seq is null
    and (:category = '' or facts.category = :category) {_NEWEST}
"""
_CALLED = f"""
{FACT} where facts.scope in ({SCOPES}) and facts.name in (select value from json_each(:names))
    {_NEWEST}
"""  # noqa: S608
_AROUND = f"""
{FACT} where facts.scope in ({SCOPES}) and facts.session = :session
    and facts.seq between :first and :last order by facts.seq
"""


class FactLookup:
    """Lists facts of a scope, the newest first, `MOST` at most. It only reads."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Read through `db`."""
        self._db = db

    def holding(
        self,
        phrases: Iterable[Sequence[str]],
        whose: RecallScope,
        *,
        most: int = MOST,
        as_of: int | None = None,
    ) -> list[Fact]:
        """Return facts that hold all words of one of some phrases, in whatever order.

        Args:
            phrases: each as its folded words.
            whose: whose facts.
            most: how many at most.
            as_of: only what was said until then, milliseconds; everything if None.
        """
        _, scopes = asked(self._db, limits_of(whose))
        match = holding(dict.fromkeys(" ".join(phrase) for phrase in phrases), scopes)
        if not match:
            return []
        # The last rows are the newest, but for a replay's: sorting all that match takes too long.
        reach, known_by = (most, LATEST) if as_of is None else (-1, as_of)
        return self._facts(_HOLDING, whose, match=match, reach=reach, most=most, at=known_by)

    def said_by(self, names: Iterable[str], whose: RecallScope) -> list[Fact]:
        """Return what speakers said who have one of these folded words in their name."""
        return self._facts(_SAID_BY, whose, words=json.dumps(list(names)))

    def kept(self, category: str, whose: RecallScope) -> list[Fact]:
        """Return facts that somebody chose to keep; those of one category, if one is given."""
        return self._facts(_KEPT, whose, category=clean(category))

    def called(self, names: Iterable[str], whose: RecallScope) -> dict[str, Fact]:
        """Return the facts of some names (see `facts`) by their names."""
        asked = json.dumps(list(names))
        return {fact.name: fact for fact in self._facts(_CALLED, whose, names=asked)}

    def around(self, fact: Fact, reach: int, whose: RecallScope) -> list[Fact]:
        """Return what was said from `reach` utterances before a fact to as many after it."""
        if fact.place is None:
            return []
        session, seq = fact.place
        place = {"session": session, "first": seq - reach, "last": seq + reach}
        return self._facts(_AROUND, whose, **place)

    def _facts(self, query: str, whose: RecallScope, **given: str | int) -> list[Fact]:
        rows = self._db.execute(query, {**limits_of(whose), "most": MOST, **given})
        return [fact_of(*row) for row in rows]
