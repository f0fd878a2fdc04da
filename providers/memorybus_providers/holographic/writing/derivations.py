"""Writes the rows of conclusions, and of the sessions that wait for a deriver.

A conclusion and the retraction of one of its sources have different order keys, and so have a cause
and its conclusion. Retracted events are therefore remembered, and a conclusion that lost a source
stays as an empty row: whatever comes first, the state is the same (G8).
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from memorybus.events import Derived, Scope, SessionRef

from memorybus_providers.base import HookContext
from memorybus_providers.deriving.deriver import Due
from memorybus_providers.holographic.writing.sessions import Sessions
from memorybus_providers.ranking.facts import clean
from memorybus_providers.remembering.notes import EndedEntry

_ADD = """
insert or ignore into derived(scope, event_id, session, at, kind, content, cause, deriver,
    supersedes)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SOURCES = "insert or ignore into derived_sources values (?, ?, ?)"
_LOST = """
select 1 from retracted
where scope = ? and event_id in (select value from json_each(?)) limit 1
"""
_TEXTS = """
select content from derived where scope = ? and content != ''
    and event_id in (select value from json_each(?)) order by event_id
"""
_RETRACT = "insert or ignore into retracted select ?, value from json_each(?)"
_RETRACTED = """
select event_id from retracted where scope = (
    select id from scopes where agent = :agent and user = :user and workspace = :workspace
)
"""
_EMPTY = """
update derived set content = '' where scope = :scope and content != '' and event_id in (
    select value from json_each(:events) union select derived from derived_sources
    where scope = :scope and source in (select value from json_each(:events))
) returning event_id
"""
_NOTE_DUE = """
insert or ignore into waiting select :scope, :cause, :deriver, :session, :at
where not exists (
    select 1 from derived where scope = :scope and cause = :cause and deriver = :deriver
)
"""
_SETTLE = "delete from waiting where scope = ? and cause = ? and deriver = ?"
_DUE = """
select cause, at, agent, user, workspace, sessions.name, root
from waiting join sessions on sessions.id = waiting.session
join scopes on scopes.id = waiting.scope where deriver = ? order by at, cause limit ?
"""
_SETTLE_OF = """
delete from waiting where cause = :cause and deriver = :deriver and scope = (
    select id from scopes where agent = :agent and user = :user and workspace = :workspace
)
"""


class SqliteDerivations:
    """Writes conclusions, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        self._db = db
        self._places = places

    def add(self, event: Derived, ctx: HookContext) -> bool:
        """Keep a conclusion; return False if it is kept already, or was retracted."""
        place = self._places.get(ctx)
        sources, cause = [clean(source) for source in event.sources], clean(event.cause)
        lost = self._db.execute(
            _LOST, (place.scope, json.dumps([*sources, ctx.event_id]))
        ).fetchone()
        content = "" if lost else clean(event.text)
        row = (place.scope, ctx.event_id, place.session, ctx.at, event.kind, content, cause)
        more = (clean(event.deriver), " ".join(map(clean, event.supersedes)))
        made = self._db.execute(_ADD, (*row, *more)).rowcount
        given = [(place.scope, source, ctx.event_id) for source in sources]
        self._db.executemany(_SOURCES, given)
        self._db.execute(_SETTLE, (place.scope, cause, more[0]))
        return bool(made and content)

    def texts(self, event_ids: Sequence[str], ctx: HookContext) -> list[str]:
        """Return what conclusions of the context's scope say."""
        rows = self._db.execute(_TEXTS, (self._places.get(ctx).scope, json.dumps(event_ids)))
        return [row[0] for row in rows]

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> list[str]:
        """Forget some events and what came from them, now or later; return the conclusions' ids."""
        return self._retract(self._places.get(ctx).scope, [clean(name) for name in event_ids])

    def retract_entry(self, entry: EndedEntry) -> list[str]:
        """Forget what came from an entry of a store that was removed; return the ids."""
        return self._retract(entry.scope, [entry.event])

    def _retract(self, scope: int, names: Sequence[str]) -> list[str]:
        events = json.dumps(names)
        self._db.execute(_RETRACT, (scope, events))
        return [row[0] for row in self._db.execute(_EMPTY, {"scope": scope, "events": events})]

    def retracted(self, scope: Scope) -> frozenset[str]:
        """Return the events of a scope from which nothing may be concluded any more."""
        rows = self._db.execute(_RETRACTED, _owner(scope))
        return frozenset(row[0] for row in rows)

    def note_due(self, derivers: Sequence[str], ctx: HookContext) -> None:
        """Note that the context's event made its session due, unless that was derived already."""
        place = self._places.get(ctx)
        given = {
            "scope": place.scope,
            "cause": ctx.event_id,
            "session": place.session,
            "at": ctx.at,
        }
        self._db.executemany(_NOTE_DUE, [{"deriver": name, **given} for name in derivers])

    def due(self, deriver: str, most: int) -> list[Due]:
        """Return sessions that are due, those that wait longest first."""
        rows = self._db.execute(_DUE, (deriver, most)).fetchall()
        return [
            Due(cause, at, Scope(agent, user, workspace), SessionRef(id=name, root=root))
            for cause, at, agent, user, workspace, name, root in rows
        ]

    def settle(self, deriver: str, done: Iterable[Due]) -> None:
        """Forget that these were due."""
        for due in done:
            given = {"cause": due.cause, "deriver": deriver, **_owner(due.scope)}
            self._db.execute(_SETTLE_OF, given)


def _owner(scope: Scope) -> dict[str, str]:
    return {name: getattr(scope, name) for name in ("agent", "user", "workspace")}
