"""The rows of scopes and sessions, to which facts belong."""

import sqlite3

import msgspec
from memorybus.events import Scope

from memorybus_providers.base import HookContext
from memorybus_providers.ranking.facts import clean, mark_of_session

MAX_CACHED = 10_000  # the most sessions whose rows are kept in memory (G10)


class SessionRows(msgspec.Struct, frozen=True):
    """The rows of a scope and a session, and the session's mark (see `facts`)."""

    scope: int
    session: int
    mark: str


class Sessions:
    """Finds or makes the rows, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[tuple[Scope, str, str], SessionRows] = {}

    def forget(self) -> None:
        """Drop the cached row numbers: a rollback may have removed these rows."""
        self._known.clear()

    def get(self, ctx: HookContext) -> SessionRows:
        """Return the rows to which the facts of a context belong."""
        key = (ctx.scope, ctx.session.id, ctx.session.root)
        place = self._known.get(key)
        if place is None:
            place = self._find_or_make(ctx)
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            self._known[key] = place
        return place

    def _find_or_make(self, ctx: HookContext) -> SessionRows:
        scope = self._row(
            "scopes", agent=ctx.scope.agent, user=ctx.scope.user, workspace=ctx.scope.workspace
        )
        name, mark = ctx.session.id, mark_of_session(ctx.session.id)
        session = self._row("sessions", scope=scope, name=name, root=ctx.session.root, mark=mark)
        return SessionRows(scope, session, mark)

    def _row(self, table: str, **values: str | int) -> int:
        cleaned = [clean(v) if isinstance(v, str) else v for v in values.values()]
        where = " and ".join(f"{column} = ?" for column in values)
        find = f"select id from {table} where {where}"  # noqa: S608  names of our own
        found = self._db.execute(find, cleaned).fetchone()
        if found is None:
            marks = ", ".join("?" * len(cleaned))
            found = self._db.execute(
                f"insert into {table}({', '.join(values)}) values ({marks}) returning id",  # noqa: S608
                cleaned,
            ).fetchone()
        return int(found[0])
