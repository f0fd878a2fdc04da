"""Exports or erases everything of an owner in the tables.

An erasure works in slices, each in its own transaction, so that no lane waits long. An erasure that
was interrupted can be repeated. The last slice waits until no lane has a transaction open, and then
also removes the rows of the scope and its sessions: lanes look these up again (see `Places`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from memorybus_providers.base import MemoryOwner, RecallScope, Residue, StoredMemory
from memorybus_providers.owners import Owner
from memorybus_providers.postgres import memory_rows
from memorybus_providers.postgres.finding.source import PostgresFacts
from memorybus_providers.postgres.link import STATEMENT_SECONDS, Connection, Link
from memorybus_providers.postgres.texts import decode_text, encode_text
from memorybus_providers.postgres.writing import index
from memorybus_providers.postgres.writing.places import begin_erasure
from memorybus_providers.remembering.instructions import INSTRUCTION

_FACTS_PER_TRANSACTION = 1_000

_PAGE = 500  # how many memories are fetched at a time

_FACTS_OF_SCOPE = "select id from facts where scope = %s limit %s"
_RESULTS = """
delete from tool_results where event_id in (
    select event_id from sources where scope = %(scope)s
    union all select event_id from corrections where scope = %(scope)s
)
"""
_DELETE_OTHERS: Final = (
    "delete from waiting where scope = %(scope)s",
    "delete from derived_sources where scope = %(scope)s",
    "delete from derived where scope = %(scope)s",
    "delete from retracted where scope = %(scope)s",
    "delete from former where scope = %(scope)s",
    "delete from corrections where scope = %(scope)s",
    "delete from curations where scope = %(scope)s",
    "delete from judgements where scope = %(scope)s",
    "delete from speakers where scope = %(scope)s",
    "delete from postings where scope in (%(scope)s, -%(scope)s)",
    "delete from sessions where scope = %(scope)s",
    "delete from scopes where id = %(scope)s",
)
_OWNER = "select agent, person, workspace from scopes where id = %s"
_OWNERS = """
with page as (
    select id, agent, person, workspace from scopes
    where (agent collate "C", person collate "C", workspace collate "C") > (%s, %s, %s)
    order by agent collate "C", person collate "C", workspace collate "C" limit %s
)
select agent, person, workspace,
    (select coalesce(sum(said), 0) from sessions where sessions.scope = page.id)
    + (select count(*) from facts where facts.scope = page.id and seq is null)
from page order by agent collate "C", person collate "C", workspace collate "C"
"""
_KEPT_MEMORIES = """
select content, kind, sessions.name, at, speaker, encode(facts.event_id, 'hex'), 0, facts.name,
    false, coalesce(state, 'active'), coalesce(since, 0), coalesce(used, 0), coalesce(successor, '')
from facts join sessions on sessions.id = facts.session
left join curations on curations.scope = facts.scope and curations.fact = facts.name
where facts.scope = %s and seq is null
"""
_CURATED: Final = (f"{_KEPT_MEMORIES} and category <> '{INSTRUCTION}' order by facts.id",)
_MEMORY_QUERIES: Final = (
    f"{_KEPT_MEMORIES} order by facts.id",
    """
select content, kind, sessions.name, at, speaker, encode(event_id, 'hex'), 0, facts.name
from sessions join facts on facts.session = sessions.id
where sessions.scope = %s and seq is not null order by sessions.id, seq
""",
    """
select content, 'former ' || kind, sessions.name, at, '', encode(event_id, 'hex'), until, '', true
from former join sessions on sessions.id = former.session where former.scope = %s order by former.id
""",
    """
select old, 'correction', sessions.name, at, '', encode(event_id, 'hex'), at
from corrections join sessions on sessions.id = corrections.session
where corrections.scope = %s and old <> '' order by event_id
""",
    """
select content, derived.kind, sessions.name, at, '', event_id, 0::bigint
from derived join sessions on sessions.id = derived.session
where derived.scope = %s and content <> '' order by event_id collate "C"
""",
    """
select distinct name collate "C", 'speaker', '', 0::bigint, '', '', 0::bigint from speakers
where scope = %s order by 1
""",
)


def owners(db: Connection, after: tuple[str, str, str] | None) -> Iterator[MemoryOwner]:
    """Yield each scope after `after`, with the number of its facts, fetched by pages."""
    last = after or ("", "", "")  # no agent has an empty name
    while page := db.execute(_OWNERS, (*map(encode_text, last), _PAGE)).fetchall():
        for agent, person, workspace, facts in page:
            last = (decode_text(agent), decode_text(person), decode_text(workspace))
            yield MemoryOwner(*last, int(facts))


def curated_memories(db: Connection, scope: RecallScope) -> Iterator[StoredMemory]:
    """Yield what was kept of a scope; a standing instruction holds until it is ended."""
    return stored_memories(db, scope, _CURATED)


def stored_memories(
    db: Connection, scope: RecallScope, queries: Sequence[str] = _MEMORY_QUERIES
) -> Iterator[StoredMemory]:
    """Yield all that is stored of a scope, fetched by pages, in the transaction of `db`."""
    for row in sorted(PostgresFacts(db).scopes(scope)):
        owner = db.execute(_OWNER, (row,)).fetchone() or ("", "", "")
        agent, person, workspace = (decode_text(name) for name in owner)
        for query in queries:
            with db.cursor(name="stored") as cursor:
                cursor.itersize = _PAGE
                for found in cursor.execute(query, (row,)):
                    yield _memory((agent, person, workspace), *found)


def _memory(owner: tuple[str, str, str], text: str, kind: str, *more: Any) -> StoredMemory:
    session, at, speaker, event, until, *rest = more
    said = (
        decode_text(text),
        *owner,
        kind,
        decode_text(session),
        at,
        decode_text(speaker),
        event,
        until,
        *rest,
    )
    return StoredMemory(*said)


class PostgresErasure:
    """Erases all that is stored of scopes, in its own transactions."""

    def __init__(self, link: Link, schema: str) -> None:
        self._link = link
        self._schema = schema

    def erase(self, scope: RecallScope) -> Residue:
        """Erase all that is stored of a scope; say where the server may still have bytes of it."""
        with self._link.transaction(STATEMENT_SECONDS, reading=True) as db:
            rows = PostgresFacts(db).scopes(scope)
        erased = sum(map(self._erase_scope, rows))
        return Residue(erased, (self._residue_text(),) if erased else ())

    def _erase_scope(self, scope: int) -> int:
        """Erase a scope's facts in slices, and with the last slice all other rows of the scope.

        Return how many facts there were.
        """
        erased = 0
        while count := self._erase_slice(scope):
            erased += count
        with self._link.transaction(STATEMENT_SECONDS) as db:
            begin_erasure(db)
            db.execute(_RESULTS, {"scope": scope})
            while count := _erase_some(db, scope):
                erased += count
            owner = db.execute(_OWNER, (scope,)).fetchone()
            for statement in _DELETE_OTHERS:
                db.execute(statement, {"scope": scope})
            if owner:
                memory_rows.refresh_if_kept(db, Owner(*map(decode_text, owner)))
        return erased

    def _erase_slice(self, scope: int) -> int:
        with self._link.transaction(STATEMENT_SECONDS) as db:
            db.execute(_RESULTS, {"scope": scope})
            return _erase_some(db, scope)

    def _residue_text(self) -> str:
        return (
            f"the server keeps bytes of erased rows in the files of the schema {self._schema!r} "
            "until it uses their space again (vacuum full rewrites the tables), and in its "
            "write-ahead log, replicas and backups"
        )


def _erase_some(db: Connection, scope: int) -> int:
    found = [
        row[0] for row in db.execute(_FACTS_OF_SCOPE, (scope, _FACTS_PER_TRANSACTION)).fetchall()
    ]
    index.remove(db, found)
    return len(found)
