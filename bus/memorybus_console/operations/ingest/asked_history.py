"""What an import asks of the history: which turns it has, and whose it may not have any more.

The turns are in an index in a temporary file, so that memory use stays flat. It is made in one pass
over the archive and the log, and holds digests in place of words. What a tombstone hides is not in
it: `Forgotten` recognises that.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from typing import Literal, NamedTuple, Self, TypeAlias

import msgspec
from memorybus.config.settings import Settings
from memorybus.events import Envelope, Scope, SessionRef, SessionSwitched, TurnCompleted
from memorybus.history.forgotten import NOTHING_FORGOTTEN, Forgotten
from memorybus.history.history import History
from memorybus.history.scratch_index import ScratchIndex
from memorybus.ids import derived_id, digest
from memorybus.lineage.graph import identity_of
from memorybus.log.entry import LoggedEvent
from memorybus.msgspec_types import prepared
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis
from memorybus.text.cleaning import clean_text

from memorybus_console.operations.ingest.reading.model import RecordedTurn
from memorybus_console.operations.ingest.report import OnStage

TurnVerdict = Literal["new", "known", "changed", "answer"]
"""What became of a turn: the history lacks it; has it; has another form of it; or the turn is an
answer without its question, and the history may have both."""


class TurnMarks(msgspec.Struct, frozen=True, gc=False):
    """What identifies a turn, as digests, so that no index holds a person's words."""

    source: str  # the source's own id; "" if there is none
    second: int | None  # when it was said, seconds; None if nobody knows
    words: bytes  # the person's words, without regard to white space
    answer: bytes  # the agent's words, likewise


class KnownTurn(msgspec.Struct, frozen=True, gc=False):
    """A turn that the history has."""

    id: str
    marks: TurnMarks
    ref: SessionRef
    ordinal: int
    at: int  # when it was said, milliseconds; of a file without times, when that was written
    partition: int
    entry: str
    replaces: str = ""  # the event with its older form; "" for none
    retracted: bool = False  # whether a rewind took it back
    replaced: bool = False  # whether a newer form stands for it
    unfinished: bool = False  # whether its older form was not taken back yet


class TurnMatch(msgspec.Struct, frozen=True):
    """What became of one turn, and the turn of the history with which it was compared."""

    verdict: TurnVerdict
    known: KnownTurn | None = None


def marks_of_recorded(turn: RecordedTurn) -> TurnMarks:
    """Return what identifies a turn of a file.

    Raises:
        InvalidEvent: one of its texts is none.
    """
    second = None if turn.at is None else turn.at // 1000
    return _marks(turn.source_id, second, turn.user, turn.assistant)


def known_turn(event: LoggedEvent, turn: TurnCompleted) -> KnownTurn:
    envelope = event.envelope
    return KnownTurn(
        envelope.id,
        _marks(turn.source_id, envelope.at // 1000, turn.user, turn.assistant),
        envelope.session,
        turn.ordinal,
        envelope.at,
        event.position.partition,
        event.position.entry,
        turn.replaces,
    )


def _marks(source: str, second: int | None, user: str, assistant: str) -> TurnMarks:
    return TurnMarks(clean_text(source), second, _digest(user), _digest(assistant))


def _digest(text: str) -> bytes:
    return digest(plain_words(text).encode())


def plain_words(text: str) -> str:
    """Return a text as it is remembered, without regard to white space."""
    return " ".join(clean_text(text).split())


def outgrows(turn: RecordedTurn, event: TurnCompleted) -> bool:
    """Return whether a turn is a newer form of a known one, and not a shorter or an equal form."""
    if plain_words(turn.user) != plain_words(event.user):
        return True
    answer, before = plain_words(turn.assistant), plain_words(event.assistant)
    return not before.startswith(answer)


def is_end_of(turn: RecordedTurn, event: TurnCompleted) -> bool:
    """Whether a turn without a question is the end of a known turn, whose head was cut off."""
    return plain_words(event.assistant).endswith(plain_words(turn.assistant))


def is_same_session(
    known_turns: Sequence[KnownTurn], turns: Sequence[TurnMarks], *, named: bool
) -> bool:
    """Return whether a session of a file is a session of the history under another name.

    At least half of the turns that could be in both must be in both. If the file does not name the
    session and knows its times, one turn is enough. A session that the file names is looked for
    only by times and ids: many sessions consist of the same words.
    """
    timed = any(turn.second is not None for turn in turns)
    if named and not timed and not any(turn.source for turn in turns):
        return False
    there = Counter(
        (turn.marks.words, turn.marks.answer) for turn in known_turns if not turn.replaced
    )
    here = Counter((turn.words, turn.answer) for turn in turns)
    both = (there & here).total()
    return (timed and not named) or 2 * both >= min(there.total(), here.total())


def replacing_rewind(session: str, older: str) -> SessionSwitched:
    """Return the event that takes the older form of a turn back."""
    return SessionSwitched(new_id=session, reason="rewind", rewound=True, retracted=(older,))


def replacing_rewind_id(older: str, newer: str) -> str:
    """Return the id of that event: the same two forms give the same one each time (G2)."""
    return derived_id("ingest", "replaced", older, newer)


class _Pair(NamedTuple):
    """A turn of the history, one of the file, and how many of the history it could be."""

    row: int
    place: int
    candidates: int


_Key: TypeAlias = Callable[[TurnMarks], Hashable]
_MayMatch: TypeAlias = Callable[["_Matching", _Pair], bool]

_NOTHING = _digest("")
_MOST_CANDIDATES = 100  # how many turns of the same words are compared with one (G10)


class _Matching:
    """Matches the turns of a file with those of the history, rule by rule."""

    def __init__(self, known_turns: Sequence[KnownTurn], turns: Sequence[TurnMarks]) -> None:
        self._known = known_turns
        self._turns = turns
        self._rows: dict[int, int] = {}
        self.matches: dict[int, TurnMatch] = {}

    def claim(self, verdict: TurnVerdict, key: _Key, may_match: _MayMatch) -> None:
        """Match each open turn with the first free one of the history that has the same key."""
        free: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        taken = set(self._rows.values())
        for row, turn in enumerate(self._known):
            if row not in taken and not (verdict == "changed" and turn.replaced):
                free[key(turn.marks)].append(row)
        for index, marks in enumerate(self._turns):
            if index in self._rows:
                continue
            rows = free[key(marks)]
            pairs = (_Pair(row, index, len(rows)) for row in islice(rows, _MOST_CANDIDATES))
            for pair in islice((each for each in pairs if may_match(self, each)), 1):
                rows.remove(pair.row)
                self._take(index, pair.row, verdict)

    def _take(self, index: int, row: int, verdict: TurnVerdict) -> None:
        turn = self._known[row]
        self._rows[index] = row
        self.matches[index] = TurnMatch("known" if turn.retracted else verdict, turn)

    def turn(self, pair: _Pair) -> TurnMarks:
        return self._turns[pair.place]

    def known(self, pair: _Pair) -> TurnMarks:
        return self._known[pair.row].marks

    def has_neighbour(self, pair: _Pair) -> bool:
        """Return whether the turns beside these two were matched with each other."""
        before, after = self._rows.get(pair.place - 1), self._rows.get(pair.place + 1)
        return before == pair.row - 1 or after == pair.row + 1

    def is_unanswered_end(self, pair: _Pair) -> bool:
        """Return whether the turn of the history is the last of its session, and has no answer."""
        turn, *after = self._known[pair.row : pair.row + 2]
        return turn.marks.answer == _NOTHING and not (after and after[0].ref.id == turn.ref.id)

    def match_first_answer(self) -> None:
        """Match a first turn without a question with the turn before that of the second one."""
        row = self._rows.get(1, len(self._known)) - 1
        if self._turns and self._turns[0].words == _NOTHING and 0 not in self.matches and row >= 0:
            self.matches[0] = TurnMatch("answer", self._known[row])


def match_turns(known_turns: Sequence[KnownTurn], turns: Sequence[TurnMarks]) -> list[TurnMatch]:
    """Return for each turn of a session what the history knows of it.

    First equal forms are matched, then other forms of the same turn. Where only words identify a
    turn, another answer counts as another form only if its neighbours agree, or if the known one
    ended a session without an answer: "ok" is said often.

    Args:
        known_turns: the turns of the session in the history, in its order, in all their forms.
    """
    work = _Matching(known_turns, turns)
    work.claim("known", lambda marks: (marks.source, marks.words, marks.answer), _has_source)
    work.claim("known", lambda marks: (marks.second, marks.words, marks.answer), _is_timed)
    work.claim("known", lambda marks: (marks.words, marks.answer), _is_untimed)
    work.claim("changed", lambda marks: marks.source, _is_same_message)
    work.claim("changed", lambda marks: (marks.second, marks.words), _is_said_then)
    work.claim("changed", lambda marks: marks.words, _stands_there)
    work.match_first_answer()
    return [work.matches.get(index, TurnMatch("new")) for index in range(len(turns))]


def _has_source(work: _Matching, pair: _Pair) -> bool:
    return bool(work.turn(pair).source)


def _is_timed(work: _Matching, pair: _Pair) -> bool:
    return work.turn(pair).second is not None


def _is_untimed(work: _Matching, pair: _Pair) -> bool:
    return work.turn(pair).second is None


def _is_same_message(work: _Matching, pair: _Pair) -> bool:
    """Return whether one id means one message; a mere number may count the lines of each file."""
    turn, logged = work.turn(pair), work.known(pair)
    same_words = turn.words == logged.words and not turn.source.isdecimal()
    return bool(turn.source) and (turn.second == logged.second or same_words)


def _is_said_then(work: _Matching, pair: _Pair) -> bool:
    turn = work.turn(pair)
    alone = pair.candidates == 1 or work.has_neighbour(pair)
    return turn.second is not None and turn.words != _NOTHING and alone


def _stands_there(work: _Matching, pair: _Pair) -> bool:
    there = work.has_neighbour(pair) or work.is_unanswered_end(pair)
    return _is_untimed(work, pair) and work.turn(pair).words != _NOTHING and there


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
            sessions = {
                session
                for mark in _marks_of_recorded(scope, turn)
                for (session,) in self._db.execute(sql, (mark, _MOST_SESSIONS))
            }
            counts.update(sessions)
        return [session for session, _ in counts.most_common()]


def session_digest(scope: Scope, session: str) -> bytes:
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
