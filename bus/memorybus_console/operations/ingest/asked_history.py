"""What an import asks of the history: which turns it has, and whose it may not have any more.

The turns are in an index in a temporary file, so that memory use stays flat. It is made in one pass
over the archive and the log, and holds digests in place of words. What a tombstone hides is not in
it: `Forgotten` recognises that.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Self

import msgspec
from memorybus.config.settings import Settings
from memorybus.events import Envelope, Scope, SessionRef, SessionSwitched, TurnCompleted
from memorybus.history.forgotten import NOTHING_FORGOTTEN, Forgotten
from memorybus.history.history import History
from memorybus.history.scratch_index import ScratchIndex
from memorybus.ids import digest
from memorybus.lineage.identity import identity_of
from memorybus.log.entry import LoggedEvent
from memorybus.msgspec_types import prepared
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis

from memorybus_console.operations.ingest.reading.model import RecordedTurn
from memorybus_console.operations.ingest.report import OnStage
from memorybus_console.operations.ingest.turn_matching import (
    KnownTurn,
    TurnMarks,
    TurnMatch,
    is_end_of,
    is_same_session,
    known_turn,
    marks_of_recorded,
    match_turns,
    outgrows,
)

_TYPES = ("SessionStarted", "SessionSwitched", "TurnCompleted")

_SCHEMA = """
create table turns(
    id text primary key, session blob not null, ordinal integer not null, row blob not null,
    replaces text not null, retracted integer not null default 0);
create index by_replaced on turns(replaces) where replaces != '';
create index by_session on turns(session, ordinal);
create table marks(mark blob not null, session blob not null, primary key(mark, session))
    without rowid;
create table sessions(session blob primary key, ref blob not null) without rowid;
"""
_TURNS = """
select row, retracted,
    exists(select 1 from turns as newer where newer.replaces = turns.id and newer.replaces != ''),
    exists(select 1 from turns as older where older.id = turns.replaces and not older.retracted)
from turns where session = ? order by ordinal, rowid
"""
_MOST_SESSIONS = 100
"""How many sessions a mark may name: more of them only say that the words are common."""


class TurnIndex(ScratchIndex):
    """The index; see `ScratchIndex`."""

    def __init__(self) -> None:
        super().__init__(_SCHEMA)

    def read(self, history: History, scopes: Iterable[Scope], step: Callable[[], None]) -> None:
        """Add the sessions and turns of some owners, from the archive and the log.

        Raises:
            ArchiveError: a part of the archive cannot be read; its turns would seem new.
        """
        every = set(scopes)
        query = Query(
            types=_TYPES,
            agents=tuple(sorted({scope.agent for scope in every})),
            users=tuple(sorted({scope.user for scope in every})),
            workspaces=tuple(sorted({scope.workspace for scope in every})),
        )
        self._db.execute("begin")
        for event in history.scan(query):
            self.note(event)
            step()
        self._db.execute("commit")

    def note(self, logged: LoggedEvent) -> None:
        """Add an event; they come in the order of their session."""
        envelope, event = logged.envelope, logged.envelope.event
        session = session_digest(envelope.scope, envelope.session.id)
        ref = msgspec.msgpack.encode(envelope.session)
        self._db.execute("insert or replace into sessions values (?, ?)", (session, ref))
        if isinstance(event, TurnCompleted):
            turn = known_turn(logged, event)
            self._db.execute(
                "insert or ignore into turns(id, session, ordinal, row, replaces) "
                "values (?, ?, ?, ?, ?)",
                (turn.id, session, turn.ordinal, msgspec.msgpack.encode(turn), turn.replaces),
            )
            self._db.executemany(
                "insert or ignore into marks values (?, ?)",
                [(mark, session) for mark in _marks_of_known(envelope.scope, turn.marks)],
            )
        if isinstance(event, SessionSwitched):
            self._db.executemany(
                "update turns set retracted = 1 where id = ?",
                [(event_id,) for event_id in event.retracted],
            )

    def ref(self, scope: Scope, session: str) -> SessionRef | None:
        """Return a session's newest place in its lineage; None if the history does not know it."""
        sql = "select ref from sessions where session = ?"
        row = self._db.execute(sql, (session_digest(scope, session),)).fetchone()
        return msgspec.msgpack.decode(row[0], type=prepared(SessionRef)) if row else None

    def next_ordinal(self, scope: Scope, session: str) -> int:
        """Return the number after that of a session's last turn; 0 if it has none."""
        sql = "select coalesce(max(ordinal), -1) + 1 from turns where session = ?"
        return int(self._db.execute(sql, (session_digest(scope, session),)).fetchone()[0])

    def turns(self, session: bytes) -> list[KnownTurn]:
        """Return a session's turns in the order of their ordinals, with their older forms."""
        return [
            msgspec.structs.replace(
                msgspec.msgpack.decode(row, type=prepared(KnownTurn)),
                retracted=bool(retracted),
                replaced=bool(replaced),
                unfinished=bool(unfinished),
            )
            for row, retracted, replaced, unfinished in self._db.execute(_TURNS, (session,))
        ]

    def sessions_with(self, scope: Scope, turns: Sequence[TurnMarks]) -> list[bytes]:
        """Return an owner's sessions with the most of some turns, those with the most first."""
        counts: Counter[bytes] = Counter()
        sql = "select session from marks where mark = ? limit ?"
        for turn in turns:
            found = {
                session
                for mark in _marks_of_recorded(scope, turn)
                for (session,) in self._db.execute(sql, (mark, _MOST_SESSIONS))
            }
            counts.update(found)
        return [session for session, _ in counts.most_common()]


def session_digest(scope: Scope, session: str) -> bytes:
    """Return the name of an owner's session in the index."""
    return _hash(*identity_of(scope, session))


def _marks_of_known(scope: Scope, marks: TurnMarks) -> list[bytes]:
    """Return everything by which a turn of the history can be found."""
    return [*_marks_of_recorded(scope, marks), _pair_mark(scope, marks)]


def _marks_of_recorded(scope: Scope, marks: TurnMarks) -> list[bytes]:
    """Return by what a turn of a file is looked for in sessions of other names."""
    owner = identity_of(scope, "")
    by_source = [_hash("id", *owner, marks.source, marks.words.hex())] if marks.source else []
    if marks.second is None:
        return [*by_source, _pair_mark(scope, marks)]
    return [*by_source, _hash("time", *owner, str(marks.second), marks.words.hex())]


def _pair_mark(scope: Scope, marks: TurnMarks) -> bytes:
    return _hash("words", *identity_of(scope, ""), marks.words.hex(), marks.answer.hex())


def _hash(*parts: str) -> bytes:
    return digest(msgspec.msgpack.encode(parts))


class AskedHistory:
    """The history as one import sees it. Use from one thread; a ``with`` block closes it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._index = self._open.enter_context(TurnIndex())
        self._history: History | None = None
        self.forgotten = NOTHING_FORGOTTEN

    def ask(self, settings: Settings, scopes: Collection[Scope], on_stage: OnStage) -> None:
        """Read the tombstones, and the turns of some owners, in one pass over the history.

        Raises:
            ArchiveError: a part of the archive cannot be read; its turns would seem new.
        """
        redis = self._open.enter_context(closing(connect_redis(settings)))
        self._history = self._open.enter_context(closing(History.from_settings(redis, settings)))
        self.forgotten = Forgotten(self._history.forgotten_queries())
        if any(head.n for head in self._history.log.heads()):
            with on_stage("compare with the history", "events", None) as step:
                self._index.read(self._history, scopes, step)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the index, and close the history."""
        self._open.close()

    def ref(self, scope: Scope, session: str) -> SessionRef | None:
        """Return a session's place in its lineage; None if the history does not know it."""
        return self._index.ref(scope, session)

    def next_ordinal(self, scope: Scope, session: str) -> int:
        """Return the number after that of a session's last turn; 0 if it has none."""
        return self._index.next_ordinal(scope, session)

    def match(
        self,
        scope: Scope,
        session: str,
        turns: Sequence[RecordedTurn],
        *,
        named: bool,
        beside: Iterable[str] = (),
    ) -> list[TurnMatch]:
        """Return for each turn of a session whether the history has it.

        Args:
            named: whether its source names it; else the id is made of the file's name.
            beside: the other sessions of the same input, which are not this one.
        """
        marks = [marks_of_recorded(turn) for turn in turns]
        known_turns = self._known_turns(scope, session, marks, beside if named else (), named=named)
        matches = match_turns(known_turns, marks)
        return [self._judge(*pair) for pair in zip(turns, matches, strict=True)]

    def _known_turns(
        self,
        scope: Scope,
        session: str,
        marks: Sequence[TurnMarks],
        beside: Iterable[str],
        *,
        named: bool,
    ) -> list[KnownTurn]:
        """Return the turns of a session, also if the history has it under another name."""
        own = session_digest(scope, session)
        known_turns = self._index.turns(own)
        if known_turns and named:
            return known_turns
        alike = [other for other in self._index.sessions_with(scope, marks) if other != own]
        others = {session_digest(scope, name) for name in beside} if alike else frozenset()
        for other in alike:
            if other not in others:
                turns = self._index.turns(other)
                known_turns += turns if is_same_session(turns, marks, named=named) else ()
        return known_turns

    def _judge(self, turn: RecordedTurn, match: TurnMatch) -> TurnMatch:
        """Compare the texts of a turn with those of another form that the history has."""
        if match.known is None or match.verdict == "known":
            return match
        envelope = self.envelope(match.known)
        event = envelope.event if envelope else None
        if not isinstance(event, TurnCompleted):
            return TurnMatch("known", match.known)
        if match.verdict == "answer":
            return TurnMatch("known", match.known) if is_end_of(turn, event) else TurnMatch("new")
        return match if outgrows(turn, event) else TurnMatch("known", match.known)

    def envelope(self, turn: KnownTurn) -> Envelope | None:
        """Return the event of a turn of the history; None if it is there no more."""
        logged = self._history and self._history.event_at(turn.partition, turn.entry)
        return logged.envelope if logged else None
