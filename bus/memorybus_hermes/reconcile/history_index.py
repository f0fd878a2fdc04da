"""An index of what the history has, in a temporary file, so that memory use stays flat.

The index knows the log's turns by their texts, not by their ids, because a live plugin makes other
ids and counts turns as it sees them. A session may contain the same turn more than once, so that
each turn of the log matches one stored turn at most.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from memorybus import clean_text
from memorybus.events import (
    Envelope,
    MemoryWritten,
    SessionEnded,
    SessionRef,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)
from memorybus.history.history import History
from memorybus.history.scratch_index import ScratchIndex
from memorybus.ids import digest

from memorybus_hermes.masking import is_masked, is_masked_copy, mask_as_host

MAX_EARLY_MS, MAX_LATE_MS = 5_000, 60_000
"""How many ms before and after its answer was stored a turn may have been published."""

_PAGE = 200
_SCHEMA = """
create table turns(
    id integer primary key, session blob not null, pair blob not null, user blob not null,
    at integer not null, event text not null, retracted integer not null,
    taken integer not null default 0);
create index by_pair on turns(session, pair) where taken = 0;
create index by_user on turns(session, user, at) where taken = 0;
create index by_event on turns(event);
create table sessions(
    id text primary key, root text not null, parent text not null, epoch integer not null,
    ended integer not null) without rowid;
create table masked_turns(id integer primary key, user text not null, assistant text not null);
create table writes(mark blob primary key) without rowid;
create table masked_writes(key blob not null, content text not null);
create index by_key on masked_writes(key);
create table family_turns(mark blob primary key) without rowid;
"""
_BY_PAIR = """
select id, event, retracted from turns where session = ? and pair = ? and taken = 0
order by retracted, id limit 1
"""
_MASKED = """
select id, event, retracted, masked_turns.user, assistant from turns join masked_turns using (id)
where session = ? and taken = 0 order by retracted, id
"""
_BY_USER = """
select id, event, retracted from turns
where session = ? and user = ? and at between ? and ? and taken = 0
order by retracted, id limit 1
"""


class LoggedTurn(msgspec.Struct, frozen=True):
    """A turn of the log: its event's id, and whether it is retracted."""

    event: str
    retracted: bool


class HistoryIndex(ScratchIndex):
    """The index; see `ScratchIndex`."""

    def __init__(self) -> None:
        super().__init__(_SCHEMA)

    # -- filling it -------------------------------------------------------------------------------

    def read(self, history: History, agent: str, on_page: Callable[[int], None]) -> None:
        """Add one agent's sessions, and all memory writes, from the archive and the log.

        Args:
            agent: the agent; another agent's session of the same id is another session.
            on_page: called with the number of events read since the last call.

        Raises:
            ArchiveError: a part of the archive cannot be read; its events would seem missing.
        """
        for partition in range(history.log.partitions):
            page = history.read(partition, count=_PAGE).events
            while page:
                self.note([event.envelope for event in page], agent)
                on_page(len(page))
                last = page[-1].position
                page = history.read(partition, last.entry, _PAGE, after_n=last.n).events

    def note(self, envelopes: list[Envelope], agent: str) -> None:
        """Add some events, of which only those of `agent` count as sessions and turns."""
        self._db.execute("begin")
        for envelope in envelopes:
            self._note(envelope, agent)
        self._db.execute("commit")

    def _note(self, envelope: Envelope, agent: str) -> None:
        event, ref = envelope.event, envelope.session
        if isinstance(event, MemoryWritten):
            self._insert_mark("writes", _write_digest(envelope.key, event.content))
            if is_masked(event.content):
                masked = (_hash(envelope.key), event.content)
                self._db.execute("insert into masked_writes values (?, ?)", masked)
        if not ref.id or isinstance(event, MemoryWritten | TurnStarted):
            return
        if envelope.scope.agent != agent:
            return
        self._note_session(ref, ended=isinstance(event, SessionEnded))
        if isinstance(event, TurnCompleted):
            row = self._db.execute(
                "insert into turns(session, pair, user, at, event, retracted) "
                "values (?, ?, ?, ?, ?, 0)",
                (
                    _hash(ref.id), pair_digest(event.user, event.assistant),
                    _words_digest(event.user),
                    envelope.at, envelope.id,
                ),
            )  # fmt: skip
            if is_masked(event.user) or is_masked(event.assistant):
                sql = "insert into masked_turns values (?, ?, ?)"
                self._db.execute(sql, (row.lastrowid, event.user, event.assistant))
        if isinstance(event, SessionSwitched):
            self._db.executemany(
                "update turns set retracted = 1 where event = ?",
                [(event_id,) for event_id in event.retracted],
            )

    def _note_session(self, ref: SessionRef, *, ended: bool) -> None:
        self._db.execute(
            "insert into sessions values (?, ?, ?, ?, ?) on conflict(id) do update set "
            "epoch = max(epoch, excluded.epoch), ended = max(ended, excluded.ended)",
            (ref.id, ref.root, ref.parent, ref.epoch, ended),
        )

    # -- asking it --------------------------------------------------------------------------------

    def session(self, session_id: str) -> SessionRef | None:
        """Return a session's place in its lineage, None if the log does not know it."""
        sql = "select id, root, parent, epoch from sessions where id = ?"
        row = self._db.execute(sql, (session_id,)).fetchone()
        return SessionRef(*row) if row else None

    def ended(self, session_id: str) -> bool:
        row = self._db.execute("select ended from sessions where id = ?", (session_id,)).fetchone()
        return bool(row and row[0])

    def take(self, session_id: str, user: str, assistant: str) -> LoggedTurn | None:
        """Return the log's turn with these two texts; it matches no other then."""
        return self._claim(_BY_PAIR, _hash(session_id), pair_digest(user, assistant))

    def take_masked(self, session_id: str, user: str, assistant: str) -> LoggedTurn | None:
        """Return the log's masked copy of a turn; see `take_near` for when to call it."""
        return self._claim_masked(_hash(session_id), user, assistant)

    def retracted(self, session_id: str, user: str, assistant: str) -> int:
        sql = "select count(*) from turns where session = ? and pair = ? and retracted"
        return int(self._fetch_one(sql, _hash(session_id), pair_digest(user, assistant))[0])

    def _claim_masked(self, session: bytes, user: str, assistant: str) -> LoggedTurn | None:
        rows = self._db.execute(_MASKED, (session,)).fetchall()
        copies = (
            row[:3]
            for row in rows
            if _is_same(row[3], clean_text(user)) and _is_same(row[4], clean_text(assistant))
        )
        return self._take(next(copies, None))

    def take_near(self, session_id: str, user: str, at: int) -> bool:
        """Return whether the log has a turn with this user text at about this time.

        Call this after `take` was called for all turns of the session. The answer may differ,
        because Hermes hands over some answers with a footer that it does not store.

        Args:
            at: when the answer was stored, milliseconds since the Unix epoch.
        """
        where = (_hash(session_id), _words_digest(user), at - MAX_EARLY_MS, at + MAX_LATE_MS)
        return self._claim(_BY_USER, *where) is not None

    def has_left(self, session_id: str) -> bool:
        """Return whether the log has turns of a session that match no stored turn so far."""
        sql = "select 1 from turns where session = ? and taken = 0 limit 1"
        return bool(self._fetch_one(sql, _hash(session_id)))

    def undone(self, session_id: str, turns: Sequence[tuple[str, str, int]]) -> list[str]:
        """Return the ids of the events of undone turns that the log does not retract.

        Call this after `take` and `take_near` were called for all turns of the session that were
        not undone.

        Args:
            turns: the undone turns: user's text, answer, and time in milliseconds.
        """
        session = _hash(session_id)
        claimed = [
            self._claim(_BY_PAIR, session, pair_digest(user, assistant))
            for user, assistant, _ in turns
        ]
        for number, (user, assistant, at) in enumerate(turns):
            where = (session, _words_digest(user), at - MAX_EARLY_MS, at + MAX_LATE_MS)
            claimed[number] = (
                claimed[number]
                or self._claim_masked(session, user, assistant)
                or self._claim(_BY_USER, *where)
            )
        return [turn.event for turn in claimed if turn is not None and not turn.retracted]

    def _claim(self, sql: str, *values: Any) -> LoggedTurn | None:
        """Take a turn of the log, if there is one.

        Retracted turns come last, because they may match a turn that a compression put away.
        """
        return self._take(self._fetch_one(sql, *values))

    def _take(self, row: Any) -> LoggedTurn | None:
        if row is None:
            return None
        self._db.execute("update turns set taken = 1 where id = ?", row[:1])
        return LoggedTurn(str(row[1]), bool(row[2]))

    def _fetch_one(self, sql: str, *values: Any) -> Any:
        return self._db.execute(sql, values).fetchone()

    def has_write(self, key: str, content: str) -> bool:
        """Return whether the log has a write of a text, or of its masked copy, to a store."""
        if self._fetch_one("select 1 from writes where mark = ?", _write_digest(key, content)):
            return True
        sql = "select content from masked_writes where key = ?"
        return any(_is_same(row[0], content) for row in self._db.execute(sql, (_hash(key),)))

    def first_seen(self, family: str, user: str, assistant: str) -> bool:
        """Return whether a turn is the first of its kind in its family of sessions, and note it."""
        return self._insert_mark("family_turns", _hash(family) + pair_digest(user, assistant))

    def _insert_mark(self, table: str, mark: bytes) -> bool:
        sql = f"insert or ignore into {table} values (?)"  # noqa: S608  our own names
        return self._db.execute(sql, (mark,)).rowcount > 0


def pair_digest(user: str, assistant: str) -> bytes:
    """Return the digest of a turn's two texts, cleaned and without regard to white space."""
    return _words_digest(user) + _words_digest(assistant)


def _is_same(logged: str, stored: str) -> bool:
    """Return whether a text of the log is a stored one, or its masked copy."""
    same = (_words_digest(stored), _words_digest(mask_as_host(stored)))
    return _words_digest(logged) in same or is_masked_copy(logged, stored)


def _words_digest(text: str) -> bytes:
    return _hash(" ".join(clean_text(text).split()))


def _write_digest(key: str, content: str) -> bytes:
    return _hash(key) + _words_digest(content)


def _hash(text: str) -> bytes:
    return digest(text.encode("utf-8", "surrogatepass"))
