"""Rows of scopes and sessions: where a fact belongs."""

import sqlite3

from memorybus.events import Scope

from memorybus_providers.base import HookContext
from memorybus_providers.holographic.texts import clean

CACHED = 10_000
"""Sessions whose rows are remembered in memory (G10)."""


class Places:
    """Finds or makes the rows; works inside the transaction its caller has open."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Read and write through `db`."""
        self._db = db
        self._known: dict[tuple[Scope, str], tuple[int, int]] = {}

    def forget(self) -> None:
        """Drop row numbers that a rollback may have taken back."""
        self._known.clear()

    def of(self, ctx: HookContext) -> tuple[int, int]:
        """Return the rows of a context's scope and session."""
        key = (ctx.scope, ctx.session.id)
        rows = self._known.get(key)
        if rows is None:
            rows = self._rows(ctx)
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[key] = rows
        return rows

    def _rows(self, ctx: HookContext) -> tuple[int, int]:
        scope = self._row(
            "scopes", agent=ctx.scope.agent, user=ctx.scope.user, workspace=ctx.scope.workspace
        )
        session = self._row("sessions", scope=scope, name=ctx.session.id, root=ctx.session.root)
        return scope, session

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
