"""Remembers the turns of a session that may be undone, and what each has published.

Hermes reports that turns were undone, but not which ones: they are those that its ``state.db``
marks as undone, or else the last one. Hermes may hand over the end of a turn after it was undone,
when the person may already have said the very same again. So the turns that have begun are
remembered with what they published: in the process, and in the host's notes in case another process
resumes the session.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from memorybus import HostSessions, clean_text
from memorybus.clock import Clock
from memorybus.events import Scope
from memorybus.ids import text_digest
from memorybus.msgspec_types import prepared

from memorybus_hermes.masking import is_masked, is_masked_copy
from memorybus_hermes.plugin.oldest import drop_oldest
from memorybus_hermes.transcripts.scaffolding import spoken_text
from memorybus_hermes.transcripts.state_db import (
    HOOK_WAIT_SECONDS,
    StateDb,
    StateDbError,
    StoredMessage,
)
from memorybus_hermes.transcripts.stored_turns import (
    StoredTurn,
    flatten_content,
    read_turns,
    said_content,
)

_MAX_TURNS, _MAX_SESSIONS = 64, 1_024
"""The most turns of a session, and the most sessions; `reconcile` finds older ones (G10)."""

_MAX_EVENTS = 256  # the most events of one turn that are remembered, the newest (G10)

_MAX_DELAY_MS = 5_000
"""The most milliseconds between the beginning of a turn and the time of its stored message."""

_MAX_MASKED_CHARS = 2_048  # the most characters of a turn's masked words that are remembered (G10)

_CUT = "[redacted]"

_MAX_MESSAGES = 64
"""The most messages that are read, the newest: no more turns of a session are remembered (G10)."""


class BegunTurn(msgspec.Struct, eq=False):
    """A turn that has begun.

    Attributes:
        left: whether its instance was shut down while it ran, so that Hermes hands its end to
            nobody.
    """

    mark: str
    at: int  # when it began, milliseconds
    scope: Scope  # its scope; in a chat that several people share, its author's
    ids: list[str] = []
    over: bool = False  # whether Hermes has reported its end, or never will
    undone: bool = False
    row: int = 0  # the row of `state.db` by which this was seen; 0 if it was not
    masked: str = ""  # the beginning of these words if Hermes has masked some of them, else ""
    left: bool = False


class TakenBack(msgspec.Struct, frozen=True):
    """A message of the person that Hermes has marked as undone."""

    words: str
    at: int  # when it was stored, milliseconds
    row: int  # its row in `state.db`


_decoder = msgspec.msgpack.Decoder(prepared(list[BegunTurn]))


def mark_of(said: str) -> str:
    """Return the digest of a person's words, without regard to white space."""
    return text_digest(" ".join(clean_text(said).split()))


class UndoableTurns:
    """The turns by session slot. Safe to call from any thread."""

    def __init__(self, notes: HostSessions, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: OrderedDict[str, list[BegunTurn]] = OrderedDict()

    def begin(self, slot: str, scope: Scope, said: str) -> None:
        with self._lock:
            self._begin(slot, scope, said)

    def over(
        self, slot: str, scope: Scope, said: str, stands: Callable[[], bool]
    ) -> BegunTurn | None:
        """Return the turn whose end Hermes hands over; None if it was undone meanwhile.

        Args:
            stands: says whether its answer is still in Hermes's transcript; called only if the
                person has said the same again since the turn was undone.
        """
        with self._lock:
            begun = [turn for turn in self._turns_of(slot) if not turn.over]
        open_ = [turn for turn in begun if turn.mark == mark_of(said)]
        if not open_ and is_masked(said):
            open_ = begun[:1]  # more of it is masked now: ends are handed over in order
        live = next((turn for turn in open_ if not turn.undone), None)
        undone = bool(open_) and open_[0].undone and (live is None or not stands())
        with self._lock:
            turn = open_[0] if undone else live or self._begin(slot, scope, said)
            turn.mark, turn.masked = mark_of(said), _masked_part(said)
            for earlier in self._turns_of(slot):
                earlier.over = True  # ends are handed over in order
                if earlier is turn:
                    break
        return None if undone else turn

    def published(self, slot: str, event_id: str, turn: BegunTurn | None = None) -> None:
        """Note an event of `turn`, which is over, and save it; or note one of the current turn."""
        with self._lock:
            turns = self._turns_of(slot)
            of = turn or (turns[-1] if turns else None)
            if of is not None:
                of.ids.append(event_id)
                del of.ids[:-_MAX_EVENTS]
            if turn is not None:
                self._save(slot)

    def undo(
        self, slot: str, taken: Sequence[TakenBack] | None, *, told: bool = True
    ) -> dict[Scope, tuple[str, ...]]:
        """Return the events of the turns that were undone since the last call, by author.

        Args:
            taken: the messages that Hermes has marked as undone, oldest first; None if they cannot
                be read.
            told: whether Hermes reported an undo, so that at least one turn was undone.
        """
        with self._lock:
            turns = claim_undone(self._turns_of(slot), taken or (), told=told)
            if turns:
                self._save(slot)
        by_author: dict[Scope, tuple[str, ...]] = {}
        for turn in turns:
            by_author[turn.scope] = (*by_author.get(turn.scope, ()), *turn.ids)
        return by_author

    def leave(self, slot: str) -> None:
        """Note that an instance is shut down; what runs in its session then ends unseen."""
        with self._lock:
            running = [turn for turn in self._turns_of(slot) if not (turn.over or turn.undone)]
            for turn in running:
                turn.left = True
            if running:
                self._save(slot)

    def find_left(
        self, slot: str, read: Callable[[], Sequence[StoredTurn] | None]
    ) -> list[tuple[BegunTurn, StoredTurn]]:
        """Return the turns whose end nobody saw, each with what Hermes has stored of it.

        Args:
            read: returns the session's turns, or None if they cannot be read now; it is called only
                if there are such turns.
        """
        with self._lock:
            turns = [turn for turn in self._turns_of(slot) if turn.left and not turn.over]
            stored = read() if turns else None
            if stored is None:
                return []
            for turn in turns:
                turn.over = True
            self._save(slot)
        pairs = ((turn, _stored_end(turn, stored)) for turn in turns)
        return [(turn, end) for turn, end in pairs if end]

    def may_be_undone(self, slot: str) -> bool:
        with self._lock:
            return any(not turn.undone for turn in self._turns_of(slot))

    def carry(self, before: str, after: str) -> None:
        """Note that a conversation continues under another id; its turns may be undone there."""
        with self._lock:
            self._turns[after] = self._turns_of(before)
            self._save(after)

    def _begin(self, slot: str, scope: Scope, said: str) -> BegunTurn:
        turns = self._turns_of(slot)
        turns.append(
            BegunTurn(mark_of(said), self._clock.now_ms(), scope, masked=_masked_part(said))
        )
        del turns[:-_MAX_TURNS]
        return turns[-1]

    def _turns_of(self, slot: str) -> list[BegunTurn]:
        turns = self._turns.get(slot)
        if turns is None:
            turns = self._turns[slot] = self._read_notes(slot)
        self._turns.move_to_end(slot)
        drop_oldest(self._turns, _MAX_SESSIONS)
        return turns

    def _read_notes(self, slot: str) -> list[BegunTurn]:
        try:
            turns = _decoder.decode(self._notes.turns(slot) or b"\x90")
        except msgspec.MsgspecError:
            return []  # notes of another release; `reconcile` finds these turns
        for turn in turns:
            turn.over = turn.over or not turn.left  # another process gets no ends of its turns
        return turns

    def _save(self, slot: str) -> None:
        body = msgspec.msgpack.encode(self._turns[slot])
        self._notes.keep_turns(slot, body, self._clock.now_ms(), _MAX_SESSIONS)


def claim_undone(
    turns: Sequence[BegunTurn], taken: Sequence[TakenBack], *, told: bool
) -> list[BegunTurn]:
    """Mark the turns that were undone, and return those that were not known to be; see `undo`.

    A message belongs to the turn with the same words, if possible to one of about the same time. If
    there is none and Hermes reported an undo, it belongs to a turn of about the same time.
    """
    rows_of_turns = {turn.row for turn in turns}
    fresh = []
    for message in reversed([message for message in taken if message.row not in rows_of_turns]):
        turn = _turn_of(message, turns, told=told)
        if turn is not None:
            fresh += [] if turn.undone else [turn]
            turn.undone, turn.row = True, message.row
    if told and not taken:
        fresh = [turn for turn in turns if not turn.undone][-1:]
        for turn in fresh:
            turn.undone = True
    return [turn for turn in turns if turn in fresh]


def _turn_of(message: TakenBack, turns: Sequence[BegunTurn], *, told: bool) -> BegunTurn | None:
    """Return the turn that a message opened; first one that is undone already without its row."""
    rowless = [t for t in reversed(turns) if not t.row and message.at >= t.at - _MAX_DELAY_MS]
    rowless.sort(key=lambda turn: not turn.undone)
    near = [turn for turn in rowless if message.at <= turn.at + _MAX_DELAY_MS]
    mark = mark_of(message.words)
    same = [turn for turn in rowless if turn.mark == mark or _is_copy(turn.masked, message.words)]
    exact = [turn for turn in same if turn in near]
    unknown = [turn for turn in near if told and not turn.undone]
    return next(iter((*exact, *same, *unknown)), None)


def _stored_end(turn: BegunTurn, stored: Sequence[StoredTurn]) -> StoredTurn | None:
    """Return the newest stored turn that has the words of one that was left, and is no older."""
    return next(
        (
            end
            for end in reversed(stored)
            if end.at >= turn.at
            and (mark_of(end.user) == turn.mark or _is_copy(turn.masked, end.user))
        ),
        None,
    )


def _masked_part(said: str) -> str:
    return said[:_MAX_MASKED_CHARS] if is_masked(said) else ""


def _is_copy(masked: str, raw: str) -> bool:
    """Return whether words are the masked copy of others; a copy that was cut ends anyhow."""
    cut = masked and len(masked) == _MAX_MASKED_CHARS
    return is_masked_copy(f"{masked}{_CUT}" if cut else masked, raw)


# -- what `state.db` says --------------------------------------------------------------------------
# A read waits for a lock a moment only (G9). If the file cannot be read, `reconcile` finds these
# turns later.


def read_taken_back(home: Path, session_id: str) -> list[TakenBack] | None:
    """Return the newest messages of the person that were undone, oldest first.

    Return None if the file is missing, locked, damaged or of another schema.
    """
    try:
        with StateDb(home / "state.db", wait=HOOK_WAIT_SECONDS) as db:
            rows = db.taken_back(session_id, "user", _MAX_MESSAGES)
    except StateDbError:
        return None
    spoken = ((spoken_text(said_content(row.content)), row) for row in rows)
    return [TakenBack(words, row.at, row.id) for words, row in spoken if words]


def read_stored_turns(home: Path, session_id: str, room: int) -> list[StoredTurn] | None:
    """Return the answered turns of a session; None if they cannot be read now."""
    try:
        with StateDb(home / "state.db", wait=0) as db:
            turns = list(read_turns(db.rows(session_id), room))
    except StateDbError:
        return None
    return [turn for turn in turns if isinstance(turn, StoredTurn)]


def answer_stands(home: Path, session_id: str, answer: str) -> bool:
    """Return whether an answer is stored and not only as undone; in doubt, return True."""
    try:
        with StateDb(home / "state.db", wait=HOOK_WAIT_SECONDS) as db:
            gone = db.taken_back(session_id, "assistant", _MAX_MESSAGES)
            there = db.standing(session_id, "assistant", _MAX_MESSAGES)
    except StateDbError:
        return True
    return _has_answer(there, answer) or not _has_answer(gone, answer)


def _has_answer(rows: Iterable[StoredMessage], answer: str) -> bool:
    mark, stored = mark_of(answer), [flatten_content(row.content) for row in rows]
    return any(mark_of(text) == mark or is_masked_copy(answer, text) for text in stored)
