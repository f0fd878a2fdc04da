"""Keeps what entries of the two stores said before they were replaced or removed."""

import sqlite3
from typing import Any, Final

from memorybus_providers.base import RecallScope
from memorybus_providers.holographic.rows import SCOPES, limits_of
from memorybus_providers.ranking.ranking import Fact
from memorybus_providers.ranking.succession import FormerEntry
from memorybus_providers.ranking.trust import INITIAL_TRUST
from memorybus_providers.remembering.notes import EndedEntry

MAX_FORMER = 500  # the most former entries of a scope that are read, the newest (G10)

_END = """
insert into former(scope, session, name, event_id, at, kind, content, until, successor)
select scope, session, name, event_id, at, kind, content, ?, ? from facts where id = ?
returning scope, lower(hex(event_id))
"""
_FORMER: Final = f"""
select former.id, until, successor, former.name, sessions.name, kind, at, content,
    lower(hex(event_id))
from former join sessions on sessions.id = former.session
where former.scope in ({SCOPES}) order by until desc, former.id desc limit {MAX_FORMER}
"""  # noqa: S608  constants of our own


def keep_former(db: sqlite3.Connection, fact: int, until: int, successor: str) -> EndedEntry:
    """Keep what an entry says as a former entry; its own row is about to be removed."""
    return EndedEntry(*db.execute(_END, (until, successor, fact)).fetchone())


def former_entries(db: sqlite3.Connection, scope: RecallScope) -> list[FormerEntry]:
    """Return the former entries within a scope, those that ended last first."""
    return [_entry(*row) for row in db.execute(_FORMER, limits_of(db, scope))]


def _entry(row: int, until: int, successor: str, *known: Any) -> FormerEntry:
    name, session, kind, at, content, event = known
    fact = Fact(-row, None, INITIAL_TRUST, name, session, kind, "", at, content, "", "", event)
    return FormerEntry(fact, until, successor)
