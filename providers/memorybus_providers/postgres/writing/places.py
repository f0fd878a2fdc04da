"""Finds or makes the rows of scopes and sessions, to which facts belong.

Row numbers are cached in memory. An erasure removes rows while no other transaction writes, and
raises a counter; a writer that finds a changed counter looks up all row numbers again.
"""

from collections.abc import Iterable, Mapping

import msgspec
from memorybus.events import Scope
from memorybus.ids import derived_id

from memorybus_providers.base import HookContext
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import encode_text
from memorybus_providers.ranking.facts import mark_of_session

MAX_CACHED = 10_000  # the most sessions whose rows are kept in memory (G10)

_NEW_SCOPES = """
insert into scopes(key, agent, person, workspace)
select * from unnest(%s::text[], %s::text[], %s::text[], %s::text[]) on conflict(key) do nothing
"""
_NEW_SESSIONS = """
insert into sessions(key, scope, name, root, mark)
select * from unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[])
on conflict(key) do nothing
"""
_SCOPES = "select key, id from scopes where key = any(%s)"
_SESSIONS = "select key, id from sessions where key = any(%s)"

_WRITING = "select pg_advisory_xact_lock_shared(hashtext(current_schema() || ' erasure'))"
_ERASING = "select pg_advisory_xact_lock(hashtext(current_schema() || ' erasure'))"
_COUNT = "select number from erasures"
_COUNTED = "update erasures set number = number + 1"

PlaceNames = tuple[Scope, str, str]  # a scope, a session's id, and its root


class PlaceRows(msgspec.Struct, frozen=True):
    """The rows of a scope and a session, and the session's mark (see `ranking.facts`)."""

    scope: int
    session: int
    mark: str


def scope_key(agent: str, user: str, workspace: str) -> str:
    """Return the key by which a scope is looked up."""
    return derived_id("scope", encode_text(agent), encode_text(user), encode_text(workspace))


def place_names(ctx: HookContext) -> PlaceNames:
    """Return the names of the scope and session to which the facts of a context belong."""
    return ctx.scope, ctx.session.id, ctx.session.root


def begin_erasure(db: Connection) -> None:
    """Wait until nobody else writes, and make every writer look up its rows again afterwards."""
    db.execute(_ERASING)
    db.execute(_COUNTED)


class Places:
    """Finds or makes the rows, in the transaction that is open."""

    def __init__(self) -> None:
        self._known: dict[PlaceNames, PlaceRows] = {}
        self._erasures = 0

    def begin(self, db: Connection) -> None:
        """Begin to write: until the transaction ends, no erasure removes a scope or a session."""
        with db.pipeline():
            db.execute(_WRITING)
            counted = db.execute(_COUNT)
        row = counted.fetchone()
        if row is not None and row[0] != self._erasures:
            self._erasures = row[0]
            self._known.clear()

    def forget(self) -> None:
        """Drop the cached row numbers: a rollback may have removed these rows."""
        self._known.clear()

    def get(self, db: Connection, ctx: HookContext) -> PlaceRows:
        """Return the rows to which the facts of a context belong."""
        return self.get_all(db, [place_names(ctx)])[place_names(ctx)]

    def get_all(
        self, db: Connection, asked: Iterable[PlaceNames]
    ) -> Mapping[PlaceNames, PlaceRows]:
        """Return the rows of at least these places, in two round trips if any is not cached."""
        asked = list(asked)
        missing = {one for one in asked if one not in self._known}
        if missing:
            if len(self._known) + len(missing) > MAX_CACHED:
                self._known.clear()
                missing = set(asked)
            self._known |= _find_or_make(db, missing)
        return self._known


def _find_or_make(db: Connection, missing: Iterable[PlaceNames]) -> dict[PlaceNames, PlaceRows]:
    keys = {one[0]: scope_key(one[0].agent, one[0].user, one[0].workspace) for one in missing}
    # Sorted, so that two transactions that make the same rows never deadlock.
    scopes = sorted((key, *_names(scope)) for scope, key in keys.items())
    rows = _insert_missing(db, _NEW_SCOPES, _SCOPES, scopes)
    sessions = {
        one: derived_id("session", keys[one[0]], encode_text(one[1]), encode_text(one[2]))
        for one in missing
    }
    given = sorted(
        (key, rows[keys[one[0]]], encode_text(one[1]), encode_text(one[2]), mark_of_session(one[1]))
        for one, key in sessions.items()
    )
    made = _insert_missing(db, _NEW_SESSIONS, _SESSIONS, given)
    return {
        one: PlaceRows(rows[keys[one[0]]], made[key], mark_of_session(one[1]))
        for one, key in sessions.items()
    }


def _names(scope: Scope) -> tuple[str, str, str]:
    return encode_text(scope.agent), encode_text(scope.user), encode_text(scope.workspace)


def _insert_missing(
    db: Connection, insert: str, select: str, rows: Iterable[tuple[object, ...]]
) -> dict[str, int]:
    """Insert the rows that are missing; return the numbers of all rows by their keys."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    with db.pipeline():
        db.execute(insert, columns)
        cursor = db.execute(select, (columns[0],))
    return dict(cursor.fetchall())
