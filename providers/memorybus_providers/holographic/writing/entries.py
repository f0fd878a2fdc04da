"""Writes the rows of facts that somebody chose to keep (see `remembering.notes`).

The names in a kept fact are linked with it, so that it is found by them.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from memorybus_providers.base import HookContext
from memorybus_providers.holographic.writing import curations, former
from memorybus_providers.holographic.writing.sessions import Sessions
from memorybus_providers.language.words import folded
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.facts import clean, names_in
from memorybus_providers.remembering.instructions import INSTRUCTION
from memorybus_providers.remembering.notes import SAID_BY_EVENTS, EndedEntry, Note
from memorybus_providers.remembering.store_entries import StoreEntries

_INSERT = """
insert into facts(scope, session, name, event_id, at, kind, speaker, content, category, tags)
values (?, ?, ?, ?, ?, ?, '', ?, ?, ?) returning id
"""
_SAME = """
select id from facts where scope = ? and kind = ? and seq is null and content = ? limit 1
"""
_SOURCE = "insert or ignore into sources values (?, ?, ?, ?, ?, ?)"
_ATTRIBUTE = f"""
update facts set (session, event_id, at, category, tags) = (
    select session, event_id, at, category, tags from sources where fact = :fact
    order by case category when '{INSTRUCTION}' then -at else at end, event_id limit 1
) where id = :fact
"""  # noqa: S608  a constant of our own
_RETRACTED = """
delete from sources
where session in (select id from sessions where scope = :scope and root = :root)
    and lower(hex(event_id)) in (select value from json_each(:events))
returning fact
"""
_NAMED = """
select id from facts
where scope = ? and seq is null and name = ? and kind in (select value from json_each(?))
"""
_UNSAY = "delete from sources where fact = ? and at <= ?"
_UNSAID = """
delete from facts where id = :fact and not exists (select 1 from sources where fact = :fact)
"""
_CONTAINING = """
select id, content from facts
where kind = :kind and seq is null and instr(content, :old) and {where}
order by content = :old desc, id limit 2
"""
# A store belongs to the agent or to the person; an entry is looked for in the scope first, and then
# in the whole store.
_WHERE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "memory": ("scope = :scope", "scope in (select id from scopes where agent = :agent)"),
        "user-store": ("scope = :scope", "scope in (select id from scopes where user = :user)"),
    }
)


class KeptFacts(StoreEntries):
    """Writes kept facts, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        self._db = db
        self._places = places

    def add(self, note: Note, ctx: HookContext) -> str | None:
        """Keep a note word for word; return its name, or None if it is blank.

        Of several events with the same note the earliest counts, and of those that are an
        instruction the newest: events of several order keys come in any order, and the state must
        not depend on it (G8).
        """
        content = clean(note.content)
        if not content or content.isspace():
            return None
        name = facts.name_of_kept(ctx.scope, note.kind, content)
        if note.kind in SAID_BY_EVENTS and self._is_forgotten(name, ctx):
            return name
        same = self._find_same(note.kind, content, ctx)
        if same is not None:
            curations.note_used(self._db, [same], ctx.at)
        fact = self._insert(name, note, content, ctx) if same is None else same
        if note.kind in SAID_BY_EVENTS:
            self._add_source(fact, note, ctx)
        return name

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete the notes that only these events of the context's lineage have said.

        Entries of the two stores stay: they have another order key, and only a later write removes
        them.
        """
        where = {"scope": self._places.get(ctx).scope, "root": clean(ctx.session.root)}
        given = {"events": json.dumps(event_ids), **where}
        for fact in {row[0] for row in self._db.execute(_RETRACTED, given).fetchall()}:
            self._delete_if_unsaid(fact)

    def forget_name(self, name: str, ctx: HookContext) -> None:
        """Delete the note of a name, unless it was said again later than ``ctx.at``."""
        given = (self._places.get(ctx).scope, name, json.dumps(sorted(SAID_BY_EVENTS)))
        for (fact,) in self._db.execute(_NAMED, given).fetchall():
            self._db.execute(_UNSAY, (fact, ctx.at))
            self._delete_if_unsaid(fact)

    def _delete_if_unsaid(self, fact: int) -> None:
        if self._db.execute(_UNSAID, {"fact": fact}).rowcount == 0:
            self._db.execute(_ATTRIBUTE, {"fact": fact})

    def _is_forgotten(self, name: str, ctx: HookContext) -> bool:
        return curations.is_forgotten(self._db, self._places.get(ctx).scope, name, ctx.at)

    def end_entry(
        self, kind: str, old_text: str, successor: str, ctx: HookContext
    ) -> EndedEntry | None:
        """Remove an entry, and keep what it said as a former entry (see `former`)."""
        fact = self._find_meant(kind, clean(old_text), ctx)
        if fact is None:
            return None
        ended = former.keep_former(self._db, fact, ctx.at, successor)
        self._db.execute("delete from facts where id = ?", (fact,))
        return ended

    def _add_source(self, fact: int, note: Note, ctx: HookContext) -> None:
        """Record an event as a source of a note, which is attributed to one of its sources."""
        session = self._places.get(ctx).session
        filed = (clean(note.category), clean(note.tags))
        source = (session, bytes.fromhex(ctx.event_id), fact, ctx.at, *filed)
        self._db.execute(_SOURCE, source)
        self._db.execute(_ATTRIBUTE, {"fact": fact})

    def _find_same(self, kind: str, content: str, ctx: HookContext) -> int | None:
        scope = self._places.get(ctx).scope
        row = self._db.execute(_SAME, (scope, kind, content)).fetchone()
        return None if row is None else int(row[0])

    def _find_meant(self, kind: str, old: str, ctx: HookContext) -> int | None:
        if not old:
            return None
        scope = self._places.get(ctx).scope
        given = {
            "kind": kind,
            "old": old,
            "scope": scope,
            "agent": clean(ctx.scope.agent),
            "user": clean(ctx.scope.user),
        }
        for where in _WHERE[kind]:
            found = self._db.execute(_CONTAINING.format(where=where), given).fetchall()
            if found:
                fact, content = found[0]
                return int(fact) if len(found) == 1 or content == old else None
        return None

    def _insert(self, name: str, note: Note, content: str, ctx: HookContext) -> int:
        place = self._places.get(ctx)
        event_id = bytes.fromhex(ctx.event_id)
        fact: int = self._db.execute(
            _INSERT,
            (
                place.scope, place.session, name, event_id, ctx.at, note.kind, content,
                clean(note.category), clean(note.tags),
            ),
        ).fetchone()[0]  # fmt: skip
        self._link(fact, place.scope, content)
        return fact

    def _link(self, fact: int, scope: int, content: str) -> None:
        for name in names_in(content):
            key = (scope, folded(name))
            self._db.execute(
                "insert or ignore into entities(scope, kind, word, name) values (?, 'named', ?, ?)",
                (*key, name),
            )
            self._db.execute(
                "insert or ignore into fact_entities(entity, fact) select id, ? from entities "
                "where kind = 'named' and scope = ? and word = ? and name = ?",
                (fact, *key, name),
            )
