"""The records of a source after parsing, before they become events."""

from datetime import tzinfo
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from memorybus.events import LATEST, StoreName
from memorybus.text.times import parse_moment

from memorybus_console.operations.ingest.refused import UnreadableInput
from memorybus_console.operations.ingest.shapes.fields import id_text, plain_time
from memorybus_console.operations.ingest.shapes.left_out import LeftOut

_BEGINNINGS = ("valid_at", "valid_from")
_ENDS = (
    "invalid_at", "expired_at", "expiration_date", "expires_at", "invalidated_at", "valid_until",
    "valid_to",
)  # fmt: skip
"""The fields of all sources that say until when something is true."""

Speaker = Literal["user", "assistant"]


class ForeignError(UnreadableInput):
    """A record is not as its source documents it; or a source cannot be read."""


class Record(NamedTuple):
    """One object of an export, and its place (``file:line`` or ``file: item 7``).

    Attributes:
        zone: the zone of times that name none.
    """

    where: str
    value: dict[str, Any]
    zone: tzinfo


class ForeignMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a source remembers: it becomes a write to a memory store.

    Attributes:
        id: the source's own id, with its kind if ids of two kinds may be the same.
        text: what is remembered.
        at: when it was remembered first, milliseconds; None if the source does not say.
        until: when it ceased to be true, milliseconds; None if it is still true.
        user: the person it is about; empty if the source does not say.
        agent: the agent that remembers it; empty if the source does not say.
        workspace: the project; empty if the source does not say.
        store: the store it belongs to: the person's, or that of the agent's own notes, which it
            shows to everybody.
        replaces: the older text that this one replaces; empty if there is none.
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


class ForeignMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a conversation; the messages of a session become turns.

    Attributes:
        id: the source's own id.
        speaker: who said it.
        text: what was said.
        session: the session, in the source's words.
        at: when it was said, milliseconds; None if the source does not say.
        user: the person; empty for a message of an agent.
        agent: the agent; empty if the source does not say.
        workspace: the project; empty if the source does not say.
        name: the speaker's name, if the source gives it.
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


class ParsedExport(msgspec.Struct, kw_only=True):
    """The content of an export.

    Attributes:
        memories: what is remembered, in the order of the source.
        messages: messages, in the order of the source.
        skipped: how many records are left out on purpose: empty ones, and kinds that are not
            needed.
        left_out: records that are not as the source documents them, and what is dropped.
    """

    memories: list[ForeignMemory] = []
    messages: list[ForeignMessage] = []
    skipped: int = 0
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)


ParsedRecord: TypeAlias = ForeignMemory | ForeignMessage | None
"""A record after parsing; None if it is left out."""


def text_of(record: Record, *names: str, default: str | None = None) -> str:
    """Return the first of these fields that a record has; a number, such as an id, as a text.

    Raises:
        ForeignError: there is no field and no default, or the field is no text.
    """
    for name in names:
        value = record.value.get(name)
        if isinstance(value, str) or id_text(value):
            return id_text(value)
        if value is not None and default is None:
            raise ForeignError(f"{name!r} must be a text, not {type(value).__name__}")
    if default is None:
        raise ForeignError(f"it has no {' or '.join(map(repr, names))}")
    return default


def time_of(record: Record, *names: str) -> int | None:
    """Return the first of these times that a record has, milliseconds; None if it has none.

    A time before 1970 is the first moment of 1970.

    Raises:
        ForeignError: the field is no time.
    """
    for name in names:
        if record.value.get(name):
            try:
                moment = parse_moment(plain_time(record.value[name]), record.zone)
            except ValueError as error:
                raise ForeignError(f"{name!r}: {error}") from error
            return min(max(moment, 0), LATEST)
    return None


def begin_of(record: Record, *names: str) -> int | None:
    """Return since when a memory is true; else the first of these times; see `time_of`."""
    return time_of(record, *_BEGINNINGS, *names)


def end_of(record: Record) -> int | None:
    """Return until when a memory is true; None if it still is; see `time_of`."""
    return time_of(record, *_ENDS)
