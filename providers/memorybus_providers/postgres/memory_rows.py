"""Keeps the agent's two stores as rows for providers of the two-method contract (see `ethos`).

``memory_rows(key, store, content, updated_at)`` has one row for each key under which a provider of
that contract looks for a store of an owner. ``memory`` is looked for under ``sessionKey`` where
``memoryScope`` is ``global``, and under ``sessionKey:personalityId`` where it is
``per-personality``; ``user`` under ``userId``. The values are those of `ethos.LoadContext`.

The rows are made from the kept facts of the stores, in the transaction that changes those facts. So
a row is always current, and contains nothing that was taken back or erased. memorybus itself does
not read these rows.
"""

from typing import Final

from memorybus.events import Scope, StoreName

from memorybus_providers.owners import Owner, folder_of, owner_of, session_key
from memorybus_providers.postgres.link import STATEMENT_SECONDS, Connection, Link
from memorybus_providers.postgres.texts import decode_text, encode_text
from memorybus_providers.remembering.notes import KINDS

SEPARATOR = "\n§\n"
"""The separator of entries, as in the agent's own files; an adapter splits a text there."""

_TABLE_EXISTS = "select to_regclass('memory_rows') is not null"
_TABLE = """
create table memory_rows(
    key text not null, store text not null, content text not null,
    updated_at timestamptz not null, primary key (key, store)
)
"""
_LOCK_ROWS = "select pg_advisory_xact_lock(hashtext(current_schema() || ' memory_rows ' || %s))"
_OWNERS = "select agent, person, workspace from scopes"
_OF_OWNER = "agent = %(agent)s and person = %(person)s and workspace = %(workspace)s"
_OF_PERSON = "person = %(person)s"
_ENTRIES = """
select string_agg(content, %(between)s order by first) from (
    select facts.content, min(facts.id) as first from facts join scopes on scopes.id = facts.scope
    where facts.seq is null and facts.kind = %(kind)s and {owned} group by facts.content
) as entries
"""
_KEEP = """
insert into memory_rows values (%s, %s, %s, clock_timestamp()) on conflict (key, store) do update
set content = excluded.content, updated_at = excluded.updated_at
where memory_rows.content <> excluded.content
"""
_DROP = "delete from memory_rows where key = %s and store = %s"
_ADD_PERSONALITIES = """
insert into memory_rows
select key || ':' || split_part(key, '@', 1), store, content, updated_at from memory_rows
where store = 'memory' and position(':' in key) = 0 on conflict do nothing
"""
"""Makes the rows of ``per-personality`` for a table of a release that had none of them.

A key begins with the agent's folder, which has neither ``@`` nor ``:``.
"""
_STORES: Final[tuple[tuple[StoreName, str], ...]] = (("memory", _OF_OWNER), ("user", _OF_PERSON))


def prepare(link: Link) -> None:
    """Make the table if it is missing, with rows for all facts that are kept so far."""
    with link.transaction(STATEMENT_SECONDS) as db:
        db.execute(_LOCK_ROWS, ("table",))
        if _has_table(db):
            db.execute(_ADD_PERSONALITIES)
            return
        db.execute(_TABLE)
        for names in db.execute(_OWNERS).fetchall():
            _refresh(db, Owner(*map(decode_text, names)))


def refresh(db: Connection, scope: Scope) -> None:
    """Rewrite the rows of a scope's stores from the kept facts, in the open transaction."""
    _refresh(db, owner_of(scope))


def refresh_if_kept(db: Connection, owner: Owner) -> None:
    """Refresh an owner's rows if the table exists: an erasure may run without the option."""
    if _has_table(db):
        _refresh(db, owner)


def _refresh(db: Connection, owner: Owner) -> None:
    """Write or delete an owner's rows. Another transaction that changes the same row waits until
    this one ends.
    """
    conversation, person = session_key(owner), folder_of(owner.user)
    keys: dict[StoreName, tuple[str, ...]] = {
        "memory": (conversation, f"{conversation}:{folder_of(owner.agent)}"),
        "user": (person,),
    }
    names = {"agent": owner.agent, "person": owner.user, "workspace": owner.workspace}
    for store, owned in _STORES:
        db.execute(_LOCK_ROWS, (keys[store][0],))
        asked = {part: encode_text(name) for part, name in names.items()}
        asked |= {"kind": KINDS[store], "between": SEPARATOR}
        row = db.execute(_ENTRIES.format(owned=owned), asked).fetchone()
        for key in keys[store]:
            if row and row[0]:
                db.execute(_KEEP, (key, store, row[0]))
            else:
                db.execute(_DROP, (key, store))


def _has_table(db: Connection) -> bool:
    row = db.execute(_TABLE_EXISTS).fetchone()
    return bool(row and row[0])
