"""Keeps what the curator and people made of facts, by the names of the facts, apart from them.

A state may come from events of two order keys, and before its fact: of several, the latest counts,
in any order (G8). Uses are a hint that no event has: a rebuild begins without them.
"""

from collections.abc import Collection

from memorybus.events import MemoryState

from memorybus_providers.base import HookContext
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import encode_text
from memorybus_providers.postgres.writing.places import Places

IS_OUT = "state = 'archived' and (successor <> '' or used <= since)"
"""Whether a curated fact is in no prompt: what was used since it was archived comes back."""

USED = """
insert into curations as known (scope, fact, used) select scope, name, %s::bigint from facts
where id = any(%s) and seq is null order by scope, name
on conflict(scope, fact) do update set used = excluded.used where excluded.used > known.used
"""
"""Notes that kept facts were used at a time, from the time and their rows."""

_SET = """
insert into curations as known (scope, fact, state, since, event_id, successor)
values (%s, %s, %s, %s, %s, %s)
on conflict(scope, fact) do update set state = excluded.state, since = excluded.since,
    event_id = excluded.event_id, successor = excluded.successor
where (excluded.since, excluded.event_id) > (known.since, known.event_id)
returning 1
"""
_FORGET = """
insert into curations as known (scope, fact, forgotten) values (%s, %s, %s)
on conflict(scope, fact) do update set forgotten = greatest(known.forgotten, excluded.forgotten)
"""
_FORGOTTEN = "select 1 from curations where scope = %s and fact = %s and forgotten >= %s"
_FORGOTTEN_NAMES = """
select scope, fact from curations where forgotten > 0 and scope = any(%s) and fact = any(%s)
"""


class PostgresCurations:
    """Writes states in the transaction that `db` has open."""

    def __init__(self, db: Connection, places: Places) -> None:
        self._db = db
        self._places = places

    def set(self, fact: str, state: MemoryState, successor: str, ctx: HookContext) -> bool:
        """Give a fact of the context's scope a state; return False if a later one is known."""
        scope, event = self._places.get(self._db, ctx).scope, bytes.fromhex(ctx.event_id)
        given = (scope, encode_text(fact), state, ctx.at, event, encode_text(successor))
        return self._db.execute(_SET, given).fetchone() is not None

    def forget(self, fact: str, ctx: HookContext) -> None:
        """Remember that a fact of the context's scope is forgotten, as far as it is known now."""
        self._db.execute(_FORGET, (self._places.get(self._db, ctx).scope, fact, ctx.at))


def is_forgotten(db: Connection, scope: int, fact: str, at: int) -> bool:
    """Return whether what was kept at a time under a name was forgotten then or later."""
    return db.execute(_FORGOTTEN, (scope, fact, at)).fetchone() is not None


def forgotten_names(db: Connection, named: Collection[tuple[int, str]]) -> set[tuple[int, str]]:
    """Return which of some facts, by scope and name, are forgotten."""
    given = (list({scope for scope, _ in named}), list({name for _, name in named}))
    return set(named) & set(db.execute(_FORGOTTEN_NAMES, given).fetchall())
