"""What a source's records are parsed into, before they are events."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from memorybus.errors import MemoryBusError
from memorybus.events import StoreName
from memorybus.operations.ingest.ingest import RefusedInput
from memorybus.text.times import parse_timestamp

Speaker = Literal["user", "assistant"]


class ForeignError(MemoryBusError):
    """A record is not as its source documents it."""


class Record(NamedTuple):
    """One object of an export, and where it stood (``file:line`` or ``file: item 7``)."""

    where: str
    value: dict[str, Any]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a source remembers: it becomes a write to a memory store.

    Attributes:
        id: the source's own id, with its kind if ids of two kinds may be the same.
        text: what is remembered.
        at: when it came to be remembered, milliseconds; None if the source does not tell.
        until: when it stopped to hold, milliseconds; None if it holds.
        user: the person it is about; empty if the source does not tell.
        agent: the agent that remembers it; empty if the source does not tell.
        workspace: the project; empty if the source does not tell.
        store: whose it is: the person's, or the agent's own note, which it shows to everybody.
        replaces: the text that this one took the place of; empty if there is none.
        session: the session it comes from, in the source's words; empty if unknown.
        kind: what the source calls it; empty if it has no word.
    """

    id: str
    text: str
    at: int | None = None
    until: int | None = None
    user: str = ""
    agent: str = ""
    workspace: str = ""
    store: StoreName = "user"
    replaces: str = ""
    session: str = ""
    kind: str = ""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a conversation: those of a session become turns.

    Attributes:
        id: the source's own id.
        speaker: who said it.
        text: what was said.
        session: the session, in the source's words.
        at: when, milliseconds; None if the source does not tell.
        user: the person; of what an agent said, empty.
        agent: the agent; empty if the source does not tell.
        workspace: the project; empty if the source does not tell.
        name: the speaker's name, if the source tells.
    """

    id: str
    speaker: Speaker
    text: str
    session: str
    at: int | None = None
    user: str = ""
    agent: str = ""
    workspace: str = ""
    name: str = ""


class Parsed(msgspec.Struct, kw_only=True):
    """What an export holds.

    Attributes:
        kept: what is remembered, in the order of the source.
        said: messages, in the order of the source.
        skipped: records that are left out on purpose: empty ones, and those of no use here.
        refused: records that are not as the source documents them, by place.
    """

    kept: list[Kept] = []
    said: list[Said] = []
    skipped: int = 0
    refused: list[RefusedInput] = []


Found: TypeAlias = Kept | Said | None
"""What one record is; None if it is left out."""


def parsed(records: Iterable[Record], read: Callable[[Record], Found]) -> Parsed:
    """Read every record; one that is refused is named, and the others go on.

    Args:
        records: of a source.
        read: what one of them is; raises `ForeignError`.
    """
    done = Parsed()
    for record in records:
        try:
            found = read(record)
        except ForeignError as error:
            done.refused.append(RefusedInput(record.where, str(error)))
            continue
        if found is None or not found.text.strip():
            done.skipped += 1
        elif isinstance(found, Kept):
            done.kept.append(found)
        else:
            done.said.append(found)
    return done


def text_of(record: Record, *names: str, default: str | None = None) -> str:
    """Return the first of some fields that a record has.

    Raises:
        ForeignError: it is no text, or there is none and no default.
    """
    for name in names:
        value = record.value.get(name)
        if isinstance(value, str):
            return value
        if value is not None:
            raise ForeignError(f"{name!r} must be a text, not {type(value).__name__}")
    if default is None:
        raise ForeignError(f"it has no {' or '.join(map(repr, names))}")
    return default


def time_of(record: Record, *names: str) -> int | None:
    """Return the first of some times that a record has, milliseconds; None if it has none.

    Raises:
        ForeignError: it is no time.
    """
    for name in names:
        if record.value.get(name):
            try:
                return parse_timestamp(record.value[name])
            except (ValueError, OverflowError) as error:
                raise ForeignError(f"{name!r}: {error}") from error
    return None
