"""Keeps the latest turns of conversations, for contracts that need them in a recall.

The bus passes only a prompt to a recall, and a recall may run in another process than the one that
applies turns. So an adapter keeps a bounded number of each owner's latest turns in a file of its
home.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.events import Message, SessionRef, TurnCompleted
from memorybus.msgspec_types import prepared

from memorybus_providers.owners import Owner, session_key

MAX_TURNS = 50  # the most turns of one owner that are kept, the newest of all sessions (G10)

MAX_BYTES = 262_144
"""The most bytes of an owner's turns; the newest turn is always kept, older ones if they fit
(G10)."""

_FOLDER = "conversations"


class SpokenTurn(msgspec.Struct, frozen=True):
    """One turn: its event, its session and epoch, and its messages."""

    event_id: str
    session: str
    epoch: int
    messages: tuple[Message, ...]


class Conversations:
    """The files with the turns. One thread writes them, and any process reads them."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER

    def note(self, owner: Owner, session: SessionRef, event_id: str, event: TurnCompleted) -> None:
        """Keep a turn; a turn that is kept already changes nothing.

        Turns of the session's earlier epochs are dropped: they were undone, or are no longer in the
        model's context.
        """
        turns = self._read(owner)
        if any(turn.event_id == event_id for turn in turns):
            return
        new = SpokenTurn(event_id, session.id, session.epoch, _messages(event))
        kept = [turn for turn in turns if not _is_over(turn, session)]
        self._write(owner, _newest([*kept, new]))

    def messages_of(self, owner: Owner, session: SessionRef | None) -> list[Message]:
        """Return the messages of a session since its epoch began, oldest first."""
        if session is None:
            return []
        here = (session.id, session.epoch)
        turns = [turn for turn in self._read(owner) if (turn.session, turn.epoch) == here]
        return [message for turn in turns for message in turn.messages]

    def _read(self, owner: Owner) -> list[SpokenTurn]:
        try:
            return msgspec.json.decode(
                self._file(owner).read_bytes(), type=prepared(list[SpokenTurn])
            )
        except (FileNotFoundError, msgspec.DecodeError):  # the file only helps recalls
            return []

    def _write(self, owner: Owner, turns: Sequence[SpokenTurn]) -> None:
        file = self._file(owner)
        private.directory(self._folder)
        new = file.with_suffix(".new")
        private.write(new, msgspec.json.encode(turns))
        new.replace(file)  # a reader sees the old file or the new one, never half of it

    def _file(self, owner: Owner) -> Path:
        return self._folder / f"{session_key(owner)}.json"


def _messages(event: TurnCompleted) -> tuple[Message, ...]:
    """Return a turn's messages; if the host gave none, make two of the texts."""
    said = (("user", event.user), ("assistant", event.assistant))
    return event.messages or tuple({"role": role, "content": text} for role, text in said)


def _is_over(turn: SpokenTurn, session: SessionRef) -> bool:
    return turn.session == session.id and turn.epoch < session.epoch


def _newest(turns: Sequence[SpokenTurn]) -> list[SpokenTurn]:
    """Return the last turns that fit, and the very last one in any case."""
    return list(_take_fitting(turns[: -MAX_TURNS - 1 : -1]))[::-1]


def _take_fitting(newest_first: Iterable[SpokenTurn]) -> Iterable[SpokenTurn]:
    room = MAX_BYTES
    for number, turn in enumerate(newest_first):
        room -= len(msgspec.json.encode(turn))
        if number and room < 0:
            return
        yield turn


_PARTS = re.compile(r"\n\s*\n|\n[ \t]*§[ \t]*\n")
_ITEM = re.compile(r"\s*[-*•]\s+")
_HEADING = re.compile(r"#{1,6}\s[^\n]*")


def split_passages(text: str) -> list[str]:
    """Return the paragraphs and list items of a text, without headings.

    A memory block takes a recollection as a whole or not at all, so a long text would never fit.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [
        part
        for paragraph in _PARTS.split(f"\n{text}\n")
        for part in _items(paragraph.strip())
        if part and not _HEADING.fullmatch(part)
    ]


def _items(paragraph: str) -> Iterator[str]:
    lines = paragraph.split("\n")
    if _HEADING.fullmatch(lines[0]):
        lines = lines[1:]
    if lines and all(map(_ITEM.match, lines)):
        yield from (_ITEM.sub("", line, count=1).strip() for line in lines)
    else:
        yield "\n".join(lines).strip()
