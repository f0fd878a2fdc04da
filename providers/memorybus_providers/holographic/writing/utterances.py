"""Writes what was said (see `remembering.utterances`) in the order of each session."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from memorybus_providers.base import HookContext
from memorybus_providers.holographic.schema import MERGE_INDEX, count_facts, index_terms
from memorybus_providers.holographic.writing.curations import forgotten_names
from memorybus_providers.holographic.writing.sessions import MAX_CACHED, Sessions
from memorybus_providers.language.words import folded
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.facts import clean, pool_of
from memorybus_providers.remembering.utterances import (
    Piece,
    Utterance,
    numbered_passages,
    unsaid_passages,
)

_SAY = """
insert into facts(scope, session, name, event_id, at, kind, speaker, tags, content, seq)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_NEXT = "select coalesce(max(seq) + 1, 0) from facts where session = ? and seq is not null"
_INDEX = """
insert into facts_fts(rowid, terms) select ? + key, value from json_each(?)
"""
_MERGE_AFTER = 16
"""How many rows are written before the index is merged, since each merge has a fixed cost."""

_MERGED_PAGES = 2
"""The most pages of the index that are merged for each row: more than are due in the long run.

The parts of an index must be merged from time to time, or a search reads too many parts. FTS5 does
this by itself once in 64 written pages, for all of them at once: with 100,000 turns in the file,
every 64th turn then took 40 ms longer."""

_LINEAGE = """
select facts.content from sessions join facts on facts.session = sessions.id
where sessions.scope = ? and sessions.root = ? and facts.seq is not null
"""
_RETRACTED = """
delete from facts where seq is not null
    and session in (select id from sessions where scope = :scope and root = :root)
    and lower(hex(event_id)) in (select value from json_each(:events))
returning content
"""
_REPEATED = """
delete from facts where seq is not null and kind = 'compression'
    and session in (select id from sessions where scope = :scope and root = :root)
    and content = :text
"""
_FORGET = """
delete from facts where seq is not null and name = :name
    and session in (select id from sessions where scope = :scope and mark = :mark)
"""

_Row = tuple[int, int, str, bytes, int, str, str, str, str]
"""A fact's columns in the order of `_SAY`, without its place in the session."""


class SqliteUtterances:
    """Writes utterances, inside the transaction that its caller has open.

    They wait in memory until `flush`, which adds all of them to the index in one statement. With a
    statement for each, FTS5 would write its index each time, which takes three times as long.
    """

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        self._db = db
        self._places = places
        self._speakers: set[tuple[int, str]] = set()
        self._pending: list[_Row] = []
        self._unmerged = 0

    def flush(self) -> None:
        """Write pending utterances to the facts and the index; needed before commits and reads."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        gone = forgotten_names(self._db, {(row[0], row[2]) for row in pending})
        pending = [row for row in pending if (row[0], row[2]) not in gone]
        (last,) = self._db.execute("select coalesce(max(id), 0) from facts").fetchone()
        self._db.executemany(_SAY, self._number_rows(pending))
        # The terms are made here because SQLite would call Python for each row: a thread that
        # releases the interpreter's lock and takes it again at once starves all other threads.
        terms = [index_terms(row[0], row[5], *row[-2:]) for row in pending]
        self._db.execute(_INDEX, (last + 1, msgspec.json.encode(terms).decode()))
        count_facts(self._db, Counter((row[0], pool_of(row[5])) for row in pending))
        self._merge_index(len(pending))

    def _merge_index(self, rows: int) -> None:
        self._unmerged += rows
        if self._unmerged >= _MERGE_AFTER:
            self._db.execute(MERGE_INDEX, (_MERGED_PAGES * self._unmerged,))
            self._unmerged = 0

    def forget(self) -> None:
        """Drop pending utterances, and the cached speakers: a rollback may have removed them."""
        self._pending.clear()
        self._speakers.clear()

    def _number_rows(self, rows: Iterable[_Row]) -> Iterator[tuple[object, ...]]:
        """Yield each row with its place in its session."""
        following: dict[int, int] = {}
        for row in rows:
            session = row[1]
            if session not in following:
                (following[session],) = self._db.execute(_NEXT, (session,)).fetchone()
            yield (*row, following[session])
            following[session] += 1

    def append(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append an event's utterances to its session, verbatim; blank ones are left out."""
        self._append(numbered_passages(utterances), ctx)

    def append_unsaid(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append the utterances that the lineage has not stored yet: a compression repeats turns.

        Pending utterances must have been flushed.
        """
        scope = self._places.get(ctx).scope
        said_before = self._db.execute(_LINEAGE, (scope, clean(ctx.session.root)))
        self._append(unsaid_passages(utterances, (text for (text,) in said_before)), ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete what was said in these events of the context's lineage.

        A compression in the middle of such a turn may have stored its beginning a second time; that
        is deleted, too. Pending utterances must have been flushed.
        """
        where = {"scope": self._places.get(ctx).scope, "root": clean(ctx.session.root)}
        given = {"events": json.dumps(event_ids), **where}
        for text in {row[0] for row in self._db.execute(_RETRACTED, given).fetchall()}:
            self._db.execute(_REPEATED, {"text": text, **where})

    def forget_name(self, name: str, ctx: HookContext) -> None:
        """Delete what was said under a name. Pending utterances must have been flushed."""
        scope, mark = self._places.get(ctx).scope, facts.session_mark(name)
        self._db.execute(_FORGET, {"name": name, "scope": scope, "mark": mark})

    def add_speaker(self, name: str, ctx: HookContext) -> None:
        """Remember a speaker of the context's scope, with one row per word of the name."""
        if not name:
            return
        scope = self._places.get(ctx).scope
        if (scope, name) in self._speakers:
            return
        written = clean(name)
        self._db.executemany(
            "insert or ignore into entities(scope, kind, word, name) values (?, 'speaker', ?, ?)",
            [(scope, word, written) for word in folded(written).split()],
        )
        if len(self._speakers) >= MAX_CACHED:
            self._speakers.clear()
        self._speakers.add((scope, name))

    def _append(self, pieces: Iterable[Piece], ctx: HookContext) -> None:
        place = self._places.get(ctx)
        event_id = bytes.fromhex(ctx.event_id)
        self._pending += [
            (
                place.scope, place.session, facts.name_of_said(place.mark, event_id, number),
                event_id, ctx.at, one.kind, clean(one.speaker), clean(one.tags), text,
            )
            for number, one, text in pieces
        ]  # fmt: skip
