"""Writes the rows of conclusions, and of the sessions that wait for a deriver.

A conclusion and the retraction of one of its sources have different order keys, and so have a cause
and its conclusion. Retracted events are therefore remembered, and a conclusion that lost a source
stays as an empty row: whatever comes first, the state is the same (G8).
"""

from collections.abc import Iterable, Sequence

from memorybus.events import Derived, Scope, SessionRef

from memorybus_providers.base import HookContext
from memorybus_providers.deriving.deriver import Due
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import decode_text, encode_text
from memorybus_providers.postgres.writing.places import Places, scope_key
from memorybus_providers.remembering.notes import EndedEntry

_IN_TURN = "select pg_advisory_xact_lock(hashtext(current_schema() || ' derived'), %s)"
"""A lane that adds a conclusion and one that retracts its source see each other's rows."""

_ADD = """
insert into derived(scope, event_id, session, at, kind, content, cause, deriver, supersedes)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict do nothing
"""
_SOURCES = """
insert into derived_sources select %s, unnest(%s::text[]), %s on conflict do nothing
"""
_LOST = "select 1 from retracted where scope = %s and event_id = any(%s) limit 1"
_TEXTS = """
select content from derived where scope = %s and content <> '' and event_id = any(%s)
order by event_id collate "C"
"""
_RETRACT = "insert into retracted select %s, unnest(%s::text[]) on conflict do nothing"
_RETRACTED = "select event_id from retracted where scope = (select id from scopes where key = %s)"
_EMPTY = """
update derived set content = '' where scope = %(scope)s and content <> '' and event_id in (
    select unnest(%(events)s::text[]) union select derived from derived_sources
    where scope = %(scope)s and source = any(%(events)s)
) returning event_id
"""
_NOTE_DUE = """
insert into waiting
select %(scope)s, %(cause)s, names.deriver, %(session)s, %(at)s
from unnest(%(derivers)s::text[]) names(deriver)
where not exists (
    select 1 from derived
    where scope = %(scope)s and cause = %(cause)s and derived.deriver = names.deriver
) on conflict do nothing
"""
_SETTLE = "delete from waiting where scope = %s and cause = %s and deriver = %s"
_DUE = """
select cause, at, agent, person, workspace, sessions.name, root
from waiting join sessions on sessions.id = waiting.session
join scopes on scopes.id = waiting.scope where deriver = %s order by at, cause collate "C" limit %s
"""
_SETTLE_OF = """
delete from waiting
where cause = %s and deriver = %s and scope = (select id from scopes where key = %s)
"""


class PostgresDerivations:
    """Writes conclusions in the transaction that `db` has open."""

    def __init__(self, db: Connection, places: Places) -> None:
        self._db = db
        self._places = places

    def add(self, event: Derived, ctx: HookContext) -> bool:
        """Keep a conclusion; return False if it is kept already, or was retracted."""
        place = self._places.get(self._db, ctx)
        self._wait_turn(place.scope)
        sources = [encode_text(source) for source in event.sources]
        lost = self._db.execute(_LOST, (place.scope, [*sources, ctx.event_id])).fetchone()
        content, cause = "" if lost else encode_text(event.text), encode_text(event.cause)
        row = (place.scope, ctx.event_id, place.session, ctx.at, event.kind, content, cause)
        more = (encode_text(event.deriver), " ".join(map(encode_text, event.supersedes)))
        made = self._db.execute(_ADD, (*row, *more)).rowcount
        self._db.execute(_SOURCES, (place.scope, sources, ctx.event_id))
        self._db.execute(_SETTLE, (place.scope, cause, more[0]))
        return bool(made and content)

    def texts(self, event_ids: Sequence[str], ctx: HookContext) -> list[str]:
        """Return what conclusions of the context's scope say."""
        given = (self._places.get(self._db, ctx).scope, [encode_text(name) for name in event_ids])
        return [decode_text(row[0]) for row in self._db.execute(_TEXTS, given).fetchall()]

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> list[str]:
        """Forget some events and what came from them, now or later; return the conclusions' ids."""
        scope = self._places.get(self._db, ctx).scope
        return self._retract(scope, [encode_text(name) for name in event_ids])

    def retract_entry(self, entry: EndedEntry) -> list[str]:
        """Forget what came from an entry of a store that was removed; return the ids."""
        return self._retract(entry.scope, [entry.event])

    def _retract(self, scope: int, events: Sequence[str]) -> list[str]:
        self._wait_turn(scope)
        self._db.execute(_RETRACT, (scope, list(events)))
        rows = self._db.execute(_EMPTY, {"scope": scope, "events": list(events)})
        return [row[0] for row in rows.fetchall()]

    def retracted(self, scope: Scope) -> frozenset[str]:
        """Return the events of a scope from which nothing may be concluded any more."""
        rows = self._db.execute(_RETRACTED, (_key(scope),)).fetchall()
        return frozenset(decode_text(row[0]) for row in rows)

    def note_due(self, derivers: Sequence[str], ctx: HookContext) -> None:
        """Note that the context's event made its session due, unless that was derived already."""
        place = self._places.get(self._db, ctx)
        names = [encode_text(name) for name in derivers]
        named = {"scope": place.scope, "session": place.session, "derivers": names}
        self._db.execute(_NOTE_DUE, {"cause": ctx.event_id, "at": ctx.at, **named})

    def due(self, deriver: str, most: int) -> list[Due]:
        """Return sessions that are due, those that wait longest first."""
        rows = self._db.execute(_DUE, (encode_text(deriver), most)).fetchall()
        return [_due(*row) for row in rows]

    def settle(self, deriver: str, done: Iterable[Due]) -> None:
        """Forget that these were due."""
        for due in done:
            self._db.execute(_SETTLE_OF, (due.cause, encode_text(deriver), _key(due.scope)))

    def _wait_turn(self, scope: int) -> None:
        """Wait for other lanes that write conclusions of a scope: each must see what came first."""
        self._db.execute(_IN_TURN, (scope % (1 << 31),))


def _key(scope: Scope) -> str:
    return scope_key(scope.agent, scope.user, scope.workspace)


def _due(cause: str, at: int, *names: str) -> Due:
    agent, person, workspace, session, root = map(decode_text, names)
    return Due(cause, at, Scope(agent, person, workspace), SessionRef(id=session, root=root))
