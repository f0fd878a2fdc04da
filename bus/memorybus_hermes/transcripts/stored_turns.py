"""Finds the turns in a stored transcript, as Hermes would have passed them to a plugin. Pure.

A turn is a user's message with all that follows it up to the next one. It counts only if it ends
with an answer in words, because Hermes passes no interrupted, empty or unanswered turns to a
plugin. Turns that the user undid are read separately: those that are in the log have to be
retracted there, and the others must not be published.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from memorybus import clean_text
from memorybus.events import Message
from memorybus.text.bounding import LONGEST_TEXT, SHORTEST_TEXT, fit_messages, plain_fields, shorten

from memorybus_hermes.transcripts import scaffolding
from memorybus_hermes.transcripts.scaffolding import opens_turn, text_of, user_text
from memorybus_hermes.transcripts.state_db import StoredMessage

_NO_ANSWER = frozenset(
    (
        "",
        "(empty)",
        "Operation interrupted.",
        "Your request was not processed. Send it again if you still want me to carry it out.",
        (
            "This turn did not complete. Some actions may already have run; verify their effects "
            "before resending."
        ),
    )
)
_INTERRUPTED = ("Operation interrupted: ", "Operation interrupted during retry (")
"""What Hermes stores where no answer came: these texts, or texts that begin so."""

_READ_AHEAD = 4
"""A turn with more messages than fit into so many events keeps none, so that memory stays flat."""

_OVERHEAD_BYTES = 4_096
"""Bytes of an event that are neither texts nor messages; `conversation` uses the same number."""

_PICTURE = "[screenshot]"
_IMAGES = frozenset(("image_url", "input_image"))
_TEXTS = frozenset(("text", "input_text", "output_text"))


class StoredTurn(msgspec.Struct, frozen=True):
    """A turn that ``state.db`` contains.

    Attributes:
        messages: the turn's messages, shortened as a live plugin shortens them; none if they are
            too large. They are cleaned when they are published.
    """

    row: int  # the id of the user's message
    user: str  # what the person said, cleaned, without skill scaffolding
    assistant: str  # the answer in words, cleaned
    messages: tuple[Message, ...]
    at: int  # when the answer was stored, milliseconds since the Unix epoch
    trimmed: bool = False  # whether `messages` was left out because of its size


class Compacted(msgspec.Struct, frozen=True):
    """Marks the place of a compression's summary; the turns after it begin with copies."""


class _Turn:
    """A turn of which some messages have been read."""

    def __init__(self, row: StoredMessage, user: str, room: int) -> None:
        self.row = row.id
        self.user = user
        self.last = row
        self._room = room
        self._left = _READ_AHEAD * room
        self._messages: list[Message] = []
        self.add(row)

    def add(self, row: StoredMessage) -> None:
        """Add a message, as long as all of them can still be shortened to fit into an event."""
        self.last = row
        if self._left > 0:
            message = plain_message(_message(row))
            self._left -= len(msgspec.msgpack.encode(message))
            self._messages.append(message)

    def finish(self, *, is_open: bool = False) -> StoredTurn | None:
        """Return the turn if it was answered, else None.

        Args:
            is_open: whether the transcript ends with it, so that tools may still be at work.
        """
        answer = clean_text(flatten_content(self.last.content)).strip()
        at_work = is_open and self.last.tool_calls
        stopped = answer in _NO_ANSWER or answer.startswith(_INTERRUPTED)
        if self.last.role != "assistant" or stopped or at_work:
            return None
        user, answer = _fit_texts(self.user, answer, self._room)
        room = self._room - _size(user) - _size(answer)
        messages = bounded_messages(self._messages, room) if self._left > 0 else ()
        return StoredTurn(
            row=self.row,
            user=user,
            assistant=answer,
            messages=messages,
            at=self.last.at,
            trimmed=not messages,
        )


def _fit_texts(user: str, answer: str, room: int) -> tuple[str, str]:
    """Return the two texts, shortened as a live plugin does it if they do not fit into an event."""
    if _size(user) + _size(answer) <= room:
        return user, answer
    return clip_text(user, room // 2), clip_text(answer, room // 2)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def read_turns(rows: Iterable[StoredMessage], room: int) -> Iterator[StoredTurn | Compacted]:
    """Yield the answered turns of a transcript, and the places of its compressions.

    Args:
        rows: its messages in the order they were written.
        room: the largest event, bytes; long texts in messages are shortened to fit.
    """
    room -= _OVERHEAD_BYTES
    turn: _Turn | None = None
    for row in rows:
        text = _text_of(row)
        if row.taken_back or row.observed:
            continue
        if scaffolding.is_summary(text):
            yield from _finish(turn)
            yield Compacted()
            turn = _begin_merged_turn(row, text, room)
        elif row.role == "user" and not scaffolding.is_synthetic(text):
            yield from _finish(turn)
            turn = _begin_turn(row, text, room)
        elif turn is not None and row.role != "system":
            turn.add(row)
    yield from _finish(turn, is_open=True)


def read_undone_turns(rows: Iterable[StoredMessage], room: int) -> Iterator[StoredTurn]:
    """Yield the answered turns of a transcript that the user undid; see `read_turns`."""
    undone = (msgspec.structs.replace(r, taken_back=False) for r in rows if r.taken_back)
    return (turn for turn in read_turns(undone, room) if isinstance(turn, StoredTurn))


def _finish(turn: _Turn | None, *, is_open: bool = False) -> Iterator[StoredTurn]:
    stored = turn.finish(is_open=is_open) if turn else None
    if stored is not None:
        yield stored


def _begin_turn(row: StoredMessage, text: str, room: int) -> _Turn | None:
    """Return the turn that a user's message begins; None if no person or task wrote it."""
    user = clean_text(user_text(text)).strip()
    return _Turn(row, user, room) if user and not scaffolding.is_review(text) else None


def _begin_merged_turn(row: StoredMessage, text: str, room: int) -> _Turn | None:
    """Return the turn that a user's message with a summary begins; None if it begins none."""
    user = scaffolding.without_summary(text) if row.role == "user" else ""
    return _begin_turn(msgspec.structs.replace(row, content=user), user, room) if user else None


def _text_of(row: StoredMessage) -> str:
    if row.role == "user":
        return said_content(row.content)
    return flatten_content(row.content) if row.role == "assistant" else ""


def said_content(content: Any) -> str:
    """Return a user's content as the text that Hermes passes to memory providers.

    Hermes stores a message with pictures as text, in which a line stands for each picture.
    """
    if isinstance(content, str) and _PICTURE in content:
        lines = content.split("\n")
        content = [{"type": "image_url"} if line == _PICTURE else line for line in lines]
    return flatten_content(content)


def flatten_content(content: Any) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    words = [part if isinstance(part, str) else _words(part) for part in content]
    text = "\n".join(word for word in words if word).strip()
    images = sum(isinstance(part, dict) and _kind(part) in _IMAGES for part in content)
    note = f"[{images} image{'s' if images != 1 else ''}]" if images else ""
    return " ".join(filter(None, (note, text)))


def _words(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and _kind(part) in _TEXTS else ""
    return text if isinstance(text, str) else ""


def _kind(part: dict[str, Any]) -> str:
    return str(part.get("type") or "").strip().lower()


def _message(row: StoredMessage) -> Message:
    extra = {
        "tool_calls": row.tool_calls,
        "tool_call_id": row.tool_call_id,
        "tool_name": row.tool_name,
    }
    return {"role": row.role, "content": row.content} | {k: v for k, v in extra.items() if v}


PUBLISHED_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "tool_name")
"""The keys of a message that are published; the others are Hermes's own (reasoning, marks)."""


_MAX_BYTES_PER_CHAR = 4  # the most bytes that a character takes


class TranscriptTurn(msgspec.Struct, frozen=True):
    """A turn's place in a transcript."""

    ordinal: int | None  # how many turns come before it; None if the transcript does not contain it
    messages: Sequence[Mapping[str, Any]] = ()


def find_turn(transcript: Sequence[Mapping[str, Any]] | None, user: str) -> TranscriptTurn:
    """Return the last turn that a user's words opened, or the very last turn if none matches.

    Args:
        transcript: Hermes's messages; a later turn may have begun in them already.
        user: what the person said, as Hermes passes it to `sync_turn`.
    """
    messages = [m for m in transcript or () if isinstance(m, Mapping)]
    starts = [i for i, message in enumerate(messages) if opens_turn(message)]
    if not starts:
        return TranscriptTurn(None)
    matching = [n for n, i in enumerate(starts) if _has_words(messages[i], user)]
    ordinal = matching[-1] if matching else len(starts) - 1
    end = starts[ordinal + 1] if ordinal + 1 < len(starts) else len(messages)
    return TranscriptTurn(ordinal, messages[starts[ordinal] : end])


def _has_words(message: Mapping[str, Any], user: str) -> bool:
    text = text_of(message.get("content"))
    return user == text or user_text(text).strip() == user.strip()


def bounded_messages(
    messages: Sequence[Mapping[str, Any]], room: int
) -> tuple[dict[str, Any], ...]:
    """Return messages as they are published, in at most `room` bytes; see `fit_messages`."""
    return fit_messages(list(map(_published, messages)), room, LONGEST_TEXT)


def plain_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with only `PUBLISHED_KEYS`, and without long texts."""
    return plain_fields(_published(message), LONGEST_TEXT)


def _published(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: message[key] for key in PUBLISHED_KEYS if message.get(key)}


def clip_text(text: str, room: int) -> str:
    """Return a text in at most about `room` bytes; a mark replaces the middle of a longer one."""
    if len(text) * _MAX_BYTES_PER_CHAR <= room or len(text.encode("utf-8", "replace")) <= room:
        return text
    return shorten(text, max(SHORTEST_TEXT, room // _MAX_BYTES_PER_CHAR))
