"""The rows of what was said (see `remembering.utterances`), in their session's order."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from memorybus_providers.base import HookContext
from memorybus_providers.holographic.schema import MERGE_INDEX, count_facts, index_terms
from memorybus_providers.holographic.writing.sessions import CACHED, Sessions
from memorybus_providers.language.words import folded
from memorybus_providers.ranking import facts
from memorybus_providers.ranking.facts import clean
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
"""Rows that are written before the index is merged: each time has a cost of its own."""

_PAGES = 2
"""Pages of the index that are merged for each row, at most: more than are due in the long run.

The parts of an index have to be merged now and then, or a search looks through too many. FTS5
itself does it once in 64 written pages, for all of them: every 64th of single turns took 40 ms
longer, with 100,000 turns before it."""

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


_Row = tuple[int, int, str, bytes, int, str, str, str, str]
"""A fact's columns as `_SAY` names them, but for its place in the session."""


class SqliteUtterances:
    """Writes utterances; works inside the transaction its caller has open.

    They wait in memory until `flush`, which puts all of them into the index in one statement: a
    statement for each would make FTS5 write out its index each time, three times as slow.
    """

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        """Write through `db`."""
        self._db = db
        self._places = places
        self._speakers: set[tuple[int, str]] = set()
        self._pending: list[_Row] = []
        self._unmerged = 0

    def flush(self) -> None:
        """Put what was said into the facts and the index; due before a commit or a look-up."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        (last,) = self._db.execute("select coalesce(max(id), 0) from facts").fetchone()
        self._db.executemany(_SAY, self._number_rows(pending))
        # The terms are made here and not by SQLite, which would call back for each: a thread that
        # gives up the interpreter's lock and takes it again at once lets no other thread have it.
        terms = [index_terms(scope, tags, text) for scope, *_, tags, text in pending]
        self._db.execute(_INDEX, (last + 1, msgspec.json.encode(terms).decode()))
        count_facts(self._db, Counter(row[0] for row in pending))
        self._merge_index(len(pending))

    def _merge_index(self, rows: int) -> None:
        self._unmerged += rows
        if self._unmerged >= _MERGE_AFTER:
            self._db.execute(MERGE_INDEX, (_PAGES * self._unmerged,))
            self._unmerged = 0

    def forget(self) -> None:
        """Drop what waits, and what a rollback may have taken back."""
        self._pending.clear()
        self._speakers.clear()

    def _number_rows(self, rows: Iterable[_Row]) -> Iterator[tuple[object, ...]]:
        """Yield rows with their places in their sessions."""
        following: dict[int, int] = {}
        for row in rows:
            session = row[1]
            if session not in following:
                (following[session],) = self._db.execute(_NEXT, (session,)).fetchone()
            yield (*row, following[session])
            following[session] += 1

    def append(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append an event's utterances to its session, verbatim; a blank one says nothing."""
        self._append(numbered_passages(utterances), ctx)

    def append_unsaid(self, utterances: Iterable[Utterance], ctx: HookContext) -> None:
        """Append what the lineage has not stored yet: a compression repeats its turns.

        Whatever was said before must have been flushed.
        """
        scope = self._places.get(ctx).scope
        said_before = self._db.execute(_LINEAGE, (scope, clean(ctx.session.root)))
        self._append(unsaid_passages(utterances, (text for (text,) in said_before)), ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what was said in some events of the context's lineage.

        A compression in the middle of such a turn has brought its beginning, too. Whatever was
        said before must have been flushed.
        """
        where = {"scope": self._places.get(ctx).scope, "root": clean(ctx.session.root)}
        given = {"events": json.dumps(event_ids), **where}
        for text in {row[0] for row in self._db.execute(_RETRACTED, given).fetchall()}:
            self._db.execute(_REPEATED, {"text": text, **where})

    def add_speaker(self, name: str, ctx: HookContext) -> None:
        """Remember that somebody of this name speaks in this scope: one row per word of it."""
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
        if len(self._speakers) >= CACHED:
            self._speakers.clear()
        self._speakers.add((scope, name))

    def _append(self, said: Iterable[Piece], ctx: HookContext) -> None:
        place = self._places.get(ctx)
        event_id = bytes.fromhex(ctx.event_id)
        self._pending += [
            (
                place.scope, place.session, facts.name_of_said(place.mark, event_id, number),
                event_id, ctx.at, one.kind, clean(one.speaker), clean(one.tags), text,
            )
            for number, one, text in said
        ]  # fmt: skip
