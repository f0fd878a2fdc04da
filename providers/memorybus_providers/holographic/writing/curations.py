"""Keeps what the curator and people made of facts, by the names of the facts, apart from them.

A state may come from events of two order keys, and before its fact: of several, the latest counts,
in any order (G8). Uses are a hint that no event has: a rebuild begins without them.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from memorybus.events import MemoryState

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.holographic.rows import IS_OUT, SCOPES, limits_of
from memorybus_providers.holographic.writing.sessions import Sessions

_SET = """
insert into curations(scope, fact, state, since, event_id, successor) values (?, ?, ?, ?, ?, ?)
on conflict do update set state = excluded.state, since = excluded.since,
    event_id = excluded.event_id, successor = excluded.successor
where (excluded.since, excluded.event_id) > (since, curations.event_id)
returning 1
"""
_FORGET = """
insert into curations(scope, fact, forgotten) values (?, ?, ?)
on conflict do update set forgotten = max(forgotten, excluded.forgotten)
"""
_FORGOTTEN = "select 1 from curations where scope = ? and fact = ? and forgotten >= ?"
_ANY_FORGOTTEN = """
select 1 from curations
where forgotten > 0 and scope in (select value from json_each(?)) limit 1
"""
_FORGOTTEN_NAMES = """
select scope, fact from curations where forgotten > 0
    and scope in (select value from json_each(?)) and fact in (select value from json_each(?))
"""
_USED = """
insert into curations(scope, fact, used) select scope, name, :now from facts
where id in (select value from json_each(:rows)) and seq is null
on conflict do update set used = excluded.used where excluded.used > used
"""
_OUT_OF_PROMPTS: Final = f"""
select facts.id from curations
join facts on facts.scope = curations.scope and facts.name = curations.fact and facts.seq is null
where curations.scope in ({SCOPES}) and {IS_OUT}
"""  # noqa: S608  constants of our own


class SqliteCurations:
    """Writes states, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        self._db = db
        self._places = places

    def set(self, fact: str, state: MemoryState, successor: str, ctx: HookContext) -> bool:
        """Give a fact of the context's scope a state; return False if a later one is known."""
        place = self._places.get(ctx)
        given = (place.scope, fact, state, ctx.at, bytes.fromhex(ctx.event_id), successor)
        return self._db.execute(_SET, given).fetchone() is not None

    def forget(self, fact: str, ctx: HookContext) -> None:
        """Remember that a fact of the context's scope is forgotten, as far as it is known now."""
        self._db.execute(_FORGET, (self._places.get(ctx).scope, fact, ctx.at))


def is_forgotten(db: sqlite3.Connection, scope: int, fact: str, at: int) -> bool:
    """Return whether what was kept at a time under a name was forgotten then or later."""
    return db.execute(_FORGOTTEN, (scope, fact, at)).fetchone() is not None


def forgotten_names(
    db: sqlite3.Connection, named: Collection[tuple[int, str]]
) -> set[tuple[int, str]]:
    """Return which of some facts, by scope and name, are forgotten."""
    scopes = json.dumps(sorted({scope for scope, _ in named}))
    if db.execute(_ANY_FORGOTTEN, (scopes,)).fetchone() is None:  # as a rule
        return set()
    names = json.dumps(sorted({name for _, name in named}))
    return set(named) & set(db.execute(_FORGOTTEN_NAMES, (scopes, names)).fetchall())


def note_used(db: sqlite3.Connection, rows: Sequence[int], now: int) -> None:
    """Note that kept facts were used at a time."""
    db.execute(_USED, {"rows": json.dumps(rows), "now": now})


def out_of_prompts(db: sqlite3.Connection, scope: RecallScope) -> frozenset[int]:
    """Return the rows of archived facts, without those that were used since."""
    return frozenset(row[0] for row in db.execute(_OUT_OF_PROMPTS, limits_of(db, scope)))
