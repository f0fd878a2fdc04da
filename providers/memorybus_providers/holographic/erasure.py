"""Exports all that the file contains of an owner, or erases it so that no byte of it is left.

An erasure works in slices, each in its own transaction, so that a lane never waits long. An erasure
that was interrupted can be repeated. SQLite overwrites removed rows (``secure_delete``), but the
full-text index only marks them; so its segments are merged until no mark is left. At the end the
write-ahead log is written into the file and emptied.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from memorybus_providers.base import MemoryOwner, RecallScope, Residue, StoredMemory
from memorybus_providers.holographic.rows import SCOPES, limits_of, rows_of
from memorybus_providers.holographic.schema import MERGE_INDEX
from memorybus_providers.remembering.instructions import INSTRUCTION

_FACTS_PER_TRANSACTION = 500

_PAGES_PER_TRANSACTION = 1_000

_SAID = """
select facts.id from sessions join facts on facts.session = sessions.id
where sessions.scope = :scope and facts.seq is not null limit :most
"""
_KEPT = "select id from facts where scope = :scope and seq is null limit :most"
_RESULTS = """
delete from tool_results where event_id in (
    select event_id from sources
        where session in (select id from sessions where scope = :scope)
    union all select event_id from corrections where scope = :scope
)
"""
_DELETE_OTHERS: Final = (
    "delete from waiting where scope = :scope",
    "delete from derived_sources where scope = :scope",
    "delete from derived where scope = :scope",
    "delete from retracted where scope = :scope",
    "delete from former where scope = :scope",
    "delete from corrections where scope = :scope",
    "delete from curations where scope = :scope",
    "delete from judgements where scope = :scope",
    "delete from entities where scope = :scope",
    "delete from sources where session in (select id from sessions where scope = :scope)",
    "delete from sessions where scope = :scope",
    "delete from scopes where id = :scope",
)
_SCOPES = f"select id, agent, user, workspace from scopes where id in ({SCOPES}) order by id"  # noqa: S608
_KEPT_MEMORIES = """
select facts.content, facts.kind, sessions.name, facts.at, facts.speaker,
    lower(hex(facts.event_id)), 0, facts.name, coalesce(state, 'active'),
    coalesce(since, 0), coalesce(used, 0), coalesce(successor, '')
from facts join sessions on sessions.id = facts.session
left join curations on curations.scope = facts.scope and curations.fact = facts.name
where facts.scope = ? and facts.seq is null
"""
_CURATED = f"{_KEPT_MEMORIES} and category <> '{INSTRUCTION}' order by facts.id"
_MEMORY_QUERIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kept": f"{_KEPT_MEMORIES} order by facts.kind, facts.id",
        "said": """
select facts.content, facts.kind, sessions.name, facts.at, facts.speaker,
    lower(hex(facts.event_id)), 0, facts.name
from sessions cross join facts on facts.session = sessions.id
where sessions.scope = ? and facts.seq is not null
order by sessions.name, sessions.root, facts.seq
""",
        "former": """
select content, 'former ' || kind, sessions.name, at, '', lower(hex(event_id)), until
from former join sessions on sessions.id = former.session where former.scope = ? order by former.id
""",
        "corrections": """
select old, 'correction', sessions.name, at, '', lower(hex(event_id)), at
from corrections join sessions on sessions.id = corrections.session
where corrections.scope = ? and old != '' order by event_id
""",
        "derived": """
select content, derived.kind, sessions.name, at, '', event_id, 0
from derived join sessions on sessions.id = derived.session
where derived.scope = ? and content != '' order by event_id
""",
        "speakers": """
select distinct name, 'speaker', '', 0, '', '', 0 from entities
where scope = ? and kind = 'speaker' order by name
""",
    }
)


_OWNERS = """
select agent, user, workspace, facts + answers from scopes
where (agent, user, workspace) > (?, ?, ?) order by agent, user, workspace
"""
_BEFORE_ALL_OWNERS = ("", "", "")  # no agent has an empty name, so every owner sorts after this one


def owners(db: sqlite3.Connection, after: tuple[str, str, str] | None) -> Iterator[MemoryOwner]:
    """Yield each scope after `after`, with the number of its facts."""
    for row in db.execute(_OWNERS, after or _BEFORE_ALL_OWNERS):
        yield MemoryOwner(*row)


def curated_memories(db: sqlite3.Connection, scope: RecallScope) -> Iterator[StoredMemory]:
    """Yield what was kept of a scope; a standing instruction holds until it is ended."""
    for row, *owner in db.execute(_SCOPES, limits_of(db, scope)).fetchall():
        for text, *more in db.execute(_CURATED, (row,)):
            yield _kept_memory(text, owner, more)


def stored_memories(db: sqlite3.Connection, scope: RecallScope) -> Iterator[StoredMemory]:
    """Yield all that is stored of a scope, row by row."""
    for row, *owner in db.execute(_SCOPES, limits_of(db, scope)).fetchall():
        for kind, query in _MEMORY_QUERIES.items():
            for text, *more in db.execute(query, (row,)):
                build = _kept_memory if kind == "kept" else _memory
                memory = build(text, owner, more)
                yield replace(memory, former=True) if kind == "former" else memory


def _memory(text: str, owner: Iterable[Any], more: Iterable[Any]) -> StoredMemory:
    return StoredMemory(text, *owner, *more)


def _kept_memory(text: str, owner: Iterable[Any], more: Iterable[Any]) -> StoredMemory:
    *columns, state, since, used, successor = more
    return replace(
        _memory(text, owner, columns), state=state, since=since, used=used, successor=successor
    )


class SqliteErasure:
    """Erases all that is stored of scopes.

    Args:
        writing: opens a transaction and commits it.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        writing: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._db = db
        self._path = path
        self._writing = writing

    def erase(self, scope: RecallScope) -> Residue:
        """Erase all that is stored of a scope, in the database and its write-ahead log."""
        erased = sum(map(self._erase_scope, rows_of(self._db, scope)))
        self._merge_index()
        (blocked, *_) = self._db.execute("pragma wal_checkpoint(truncate)").fetchone()
        return Residue(erased, (self._residue_text(),) if blocked else ())

    def _erase_scope(self, row: int) -> int:
        """Erase a scope's facts in slices; return how many there were.

        Results of tools go with the first slice, everything else with the last one.
        """
        erased, last = 0, False
        while not last:
            with self._writing():
                self._db.execute(_RESULTS, {"scope": row})
                count = self._erase_slice(row)
                erased += count
                last = count < _FACTS_PER_TRANSACTION
                for statement in _DELETE_OTHERS if last else ():
                    self._db.execute(statement, {"scope": row})
        return erased

    def _erase_slice(self, row: int) -> int:
        erased = 0
        for query in (_SAID, _KEPT):
            given = {"scope": row, "most": _FACTS_PER_TRANSACTION - erased}
            ids = self._db.execute(query, given).fetchall()
            self._db.executemany("delete from facts where id = ?", ids)
            erased += len(ids)
        return erased

    def _merge_index(self) -> None:
        """Merge all segments of the full-text index into one, without marks of removed rows."""
        # A negative number begins the merge, positive ones continue it.
        pages = -_PAGES_PER_TRANSACTION
        done = False
        while not done:
            with self._writing():
                before = self._db.total_changes
                self._db.execute(MERGE_INDEX, (pages,))
                # SQLite's manual: fewer than two changes mean that nothing was left to merge.
                done = self._db.total_changes - before < 2
            pages = _PAGES_PER_TRANSACTION

    def _residue_text(self) -> str:
        return (
            f"{self._path.name}-wal, beside {self._path}, may still hold what was erased: somebody "
            "was reading for longer than a write waits; ask again"
        )
