"""Writes the rows of facts that somebody chose to keep (see `remembering.notes`).

Several lanes may keep the same note at the same time. A lane that changes the sources of a note
locks the note's row until its transaction ends.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from memorybus.errors import Transient

from memorybus_providers.base import HookContext
from memorybus_providers.language.words import folded
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import LONGEST_NAME, encode_text
from memorybus_providers.postgres.writing import curations, index
from memorybus_providers.postgres.writing.places import PlaceRows, Places
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.facts import clean, names_in
from memorybus_providers.remembering.instructions import INSTRUCTION
from memorybus_providers.remembering.notes import SAID_BY_EVENTS, EndedEntry, Note
from memorybus_providers.remembering.store_entries import StoreEntries

_TRIES = 3
_INSERT = """
insert into facts(id, scope, session, name, event_id, at, kind, speaker, category, tags, content)
values (nextval('fact_ids'), %s, %s, %s, %s, %s, %s, '', %s, %s, %s)
on conflict(scope, kind, md5(content)) where seq is null do nothing returning id
"""
_SAME = """
select id from facts
where scope = %s and kind = %s and md5(content) = md5(%s) and seq is null for update
"""
_NAMED = """
insert into named select %s, word, %s from unnest(%s::text[]) as word on conflict do nothing
"""
_SOURCE = """
insert into sources(session, event_id, fact, scope, at, category, tags)
values (%s, %s, %s, %s, %s, %s, %s) on conflict do nothing
"""
_FIRST = f"""
select session, event_id, at, category, tags from sources where fact = %s
order by case category when '{INSTRUCTION}' then -at else at end, event_id limit 1
"""  # noqa: S608  a constant of our own
_ATTRIBUTED = """
select scope, kind, facts.tags, content from facts where id = %s
"""
_ATTRIBUTE = """
update facts set session = %s, event_id = %s, at = %s, category = %s, tags = %s where id = %s
"""
_SAID = """
select distinct fact from sources
where session in (select id from sessions where scope = %s and root = %s) and event_id = any(%s)
order by fact
"""
_CALLED = """
select id from facts where scope = %s and name = %s and kind = any(%s) order by id for update
"""
_UNSAY_ONE = "delete from sources where fact = any(%s) and at <= %s"
_HOLD = "select id from facts where id = any(%s) order by id for update"
_UNSAY = """
delete from sources
where session in (select id from sessions where scope = %s and root = %s) and event_id = any(%s)
"""
_UNSAID = """
select id from facts
where id = any(%s) and not exists (select 1 from sources where sources.fact = facts.id)
"""
_END = """
insert into former(scope, session, name, event_id, at, kind, content, until, successor)
select scope, session, name, event_id, at, kind, content, %s, %s from facts where id = %s
returning scope, encode(event_id, 'hex')
"""
_CONTAINING = """
select id, content from facts
where kind = %(kind)s and seq is null and position(%(old)s in content) > 0
"""
_ORDER = " order by content <> %(old)s, id limit 2"
# A store belongs to the agent or to the person; an entry is looked for in the scope first, and then
# in the whole store.
_ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory": " and scope in (select id from scopes where agent = %(agent)s)",
        "user-store": " and scope in (select id from scopes where person = %(person)s)",
    }
)


class Notes(StoreEntries):
    """Writes kept facts in the transaction that `db` has open."""

    def __init__(self, db: Connection, places: Places) -> None:
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
        place = self._places.get(self._db, ctx)
        if note.kind in SAID_BY_EVENTS and curations.is_forgotten(
            self._db, place.scope, name, ctx.at
        ):
            return name
        fact = self._find_or_insert(name, note, place, ctx)
        if note.kind in SAID_BY_EVENTS:
            filed = (encode_text(note.category), encode_text(note.tags))
            event = bytes.fromhex(ctx.event_id)
            self._db.execute(_SOURCE, (place.session, event, fact, place.scope, ctx.at, *filed))
            self._attribute(fact)
        return name

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete the notes that only these events of the context's lineage have said.

        Entries of the two stores stay: they have another order key, and only a later write removes
        them.
        """
        events = [bytes.fromhex(event_id) for event_id in event_ids]
        given = (self._places.get(self._db, ctx).scope, encode_text(ctx.session.root), events)
        said = [row[0] for row in self._db.execute(_SAID, given).fetchall()]
        if not said:
            return
        self._db.execute(_HOLD, (said,))
        self._db.execute(_UNSAY, given)
        self._remove_unsaid(said)

    def forget_name(self, name: str, ctx: HookContext) -> None:
        """Delete the note of a name, unless it was said again later than ``ctx.at``."""
        given = (self._places.get(self._db, ctx).scope, encode_text(name), sorted(SAID_BY_EVENTS))
        named = [row[0] for row in self._db.execute(_CALLED, given).fetchall()]
        self._db.execute(_UNSAY_ONE, (named, ctx.at))
        self._remove_unsaid(named)

    def _remove_unsaid(self, notes: Sequence[int]) -> None:
        """Remove the notes without a source, and attribute the others to one of theirs."""
        unsaid = {row[0] for row in self._db.execute(_UNSAID, (list(notes),)).fetchall()}
        index.remove(self._db, sorted(unsaid))
        for fact in notes:
            if fact not in unsaid:
                self._attribute(fact)

    def end_entry(
        self, kind: str, old_text: str, successor: str, ctx: HookContext
    ) -> EndedEntry | None:
        """Remove an entry, and keep what it said as a former entry."""
        fact = self._find_meant(kind, encode_text(old_text), ctx)
        if fact is None:
            return None
        ended = self._db.execute(_END, (ctx.at, successor, fact)).fetchone()
        index.remove(self._db, [fact])
        return EndedEntry(*ended) if ended else None

    def _find_or_insert(self, name: str, note: Note, place: PlaceRows, ctx: HookContext) -> int:
        """Return the row of a note, which is locked; make it if it is missing."""
        text = encode_text(note.content)
        event = bytes.fromhex(ctx.event_id)
        row = (place.scope, place.session, name, event, ctx.at, note.kind)
        filed = (encode_text(note.category), encode_text(note.tags))
        for _ in range(_TRIES):
            made = self._db.execute(_INSERT, (*row, *filed, text)).fetchone()
            if made is not None:
                self._index(int(made[0]), place.scope, note)
                return int(made[0])
            same = self._db.execute(_SAME, (place.scope, note.kind, text)).fetchone()
            if same is not None:
                self._db.execute(curations.USED, (ctx.at, [same[0]]))
                return int(same[0])
        raise Transient("a note was kept and forgotten by others at once")

    def _index(self, fact: int, scope: int, note: Note) -> None:
        tags, content = encode_text(note.tags), encode_text(note.content)
        index.post(self._db, fact, scope, note.kind, tags, content)
        names = [encode_text(folded(name))[:LONGEST_NAME] for name in names_in(clean(note.content))]
        if names:
            self._db.execute(_NAMED, (scope, fact, names))

    def _attribute(self, fact: int) -> None:
        """Give a note the session, time, category and tags of the source that counts."""
        first = self._db.execute(_FIRST, (fact,)).fetchone()
        known = self._db.execute(_ATTRIBUTED, (fact,)).fetchone()
        if first is None or known is None:
            return
        scope, kind, tags, content = known
        self._db.execute(_ATTRIBUTE, (*first, fact))
        if first[-1] != tags:
            index.unpost(self._db, [(fact, scope, kind, tags, content)])
            index.post(self._db, fact, scope, kind, first[-1], content)

    def _find_meant(self, kind: str, old: str, ctx: HookContext) -> int | None:
        if not old:
            return None
        given = {
            "kind": kind,
            "old": old,
            "scope": self._places.get(self._db, ctx).scope,
            "agent": encode_text(ctx.scope.agent),
            "person": encode_text(ctx.scope.user),
        }
        for here in (" and scope = %(scope)s", _ELSEWHERE[kind]):
            found = self._db.execute(_CONTAINING + here + _ORDER, given).fetchall()
            if found:
                fact, content = found[0]
                return int(fact) if len(found) == 1 or content == old else None
        return None
