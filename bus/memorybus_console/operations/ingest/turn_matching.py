"""Decides which imported turns the history has already, and in which form; pure.

A turn is identified by what stays when its file is cut, grown, renamed or exported again: the
source's own id of its message; else the second in which it was said and the person's words; without
any time, the words and what stands beside them. Each turn of the history stands for one turn of a
file at most, so that words which were said twice stay two turns.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from memorybus.events import SessionRef, SessionSwitched, TurnCompleted
from memorybus.ids import derived_id, digest
from memorybus.log.entry import LoggedEvent
from memorybus.text.cleaning import clean_text

from memorybus_console.operations.ingest.reading.model import RecordedTurn

TurnVerdict = Literal["new", "known", "changed", "answer"]
"""What became of a turn: the history lacks it; has it; has another form of it; or the turn is an
answer without its question, and the history may have both."""


class TurnMarks(msgspec.Struct, frozen=True, gc=False):
    """What identifies a turn, as digests, so that no index holds a person's words.

    Attributes:
        source: the source's own id; "" if there is none.
        second: when it was said, seconds; None if nobody knows.
        words: the person's words, without regard to white space.
        answer: the agent's words, likewise.
    """

    source: str
    second: int | None
    words: bytes
    answer: bytes


class KnownTurn(msgspec.Struct, frozen=True, gc=False):
    """A turn that the history has.

    Attributes:
        at: when it was said, milliseconds; of a file without times, when that was written.
        replaces: the event with its older form; "" for none.
        retracted: whether a rewind took it back.
        replaced: whether a newer form stands for it.
        unfinished: whether its older form was not taken back yet.
    """

    id: str
    marks: TurnMarks
    ref: SessionRef
    ordinal: int
    at: int
    partition: int
    entry: str
    replaces: str = ""
    retracted: bool = False
    replaced: bool = False
    unfinished: bool = False


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
    """Return a turn of the history."""
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
_MOST_CANDIDATES = 100
"""How many turns of the same words are compared with one (G10)."""


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
        for row, one in enumerate(self._known):
            if row not in taken and not (verdict == "changed" and one.replaced):
                free[key(one.marks)].append(row)
        for index, turn in enumerate(self._turns):
            if index in self._rows:
                continue
            rows = free[key(turn)]
            pairs = (_Pair(row, index, len(rows)) for row in islice(rows, _MOST_CANDIDATES))
            for pair in islice((one for one in pairs if may_match(self, one)), 1):
                rows.remove(pair.row)
                self._take(index, pair.row, verdict)

    def _take(self, index: int, row: int, verdict: TurnVerdict) -> None:
        turn = self._known[row]
        self._rows[index] = row
        self.matches[index] = TurnMatch("known" if turn.retracted else verdict, turn)

    def turn(self, pair: _Pair) -> TurnMarks:
        """Return the turn of the file."""
        return self._turns[pair.place]

    def known(self, pair: _Pair) -> TurnMarks:
        """Return the turn of the history."""
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
