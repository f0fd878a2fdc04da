"""The records of a source: read from a list, an object with lists, or a JSON value on each line."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from memorybus.events import LATEST, StoreName
from memorybus.text.times import parse_moment

from memorybus_console.operations.ingest.reading.json_files import (
    JsonFile,
    decoded_lines,
    parse_file,
)
from memorybus_console.operations.ingest.reading.names import id_text, plain_time
from memorybus_console.operations.ingest.report import LeftOut, RefusedInput, UnreadableInput

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
    """One object of an export, and its place (``file:line`` or ``file: item 7``)."""

    where: str
    value: dict[str, Any]
    zone: tzinfo  # the zone of times that name none


class ForeignMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a source remembers: it becomes a write to a memory store.

    Attributes:
        at: when it was remembered first, milliseconds; None if the source does not say.
        store: the store it belongs to: the person's, or that of the agent's own notes, which it
            shows to everybody.
    """

    id: str  # the source's own id, with its kind if ids of two kinds may be the same
    text: str
    at: int | None = None
    until: int | None = None  # when it ceased to be true, milliseconds; None if it is still true
    user: str = ""  # the person it is about; empty if the source does not say
    agent: str = ""  # the agent that remembers it; empty if the source does not say
    workspace: str = ""  # the project; empty if the source does not say
    store: StoreName = "user"
    replaces: str = ""  # the older text that this one replaces; empty if there is none
    session: str = ""  # the session it comes from, in the source's words; empty if unknown
    kind: str = ""  # what the source calls it; empty if it has no word


class ForeignMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a conversation; the messages of a session become turns."""

    id: str
    speaker: Speaker
    text: str
    session: str
    at: int | None = None  # when it was said, milliseconds; None if the source does not say
    user: str = ""  # the person; empty for a message of an agent
    agent: str = ""  # the agent; empty if the source does not say
    workspace: str = ""  # the project; empty if the source does not say
    name: str = ""  # the speaker's name, if the source gives it


class ParsedExport(msgspec.Struct, kw_only=True):
    """The content of an export.

    Attributes:
        skipped: how many records are left out on purpose: empty ones, and kinds that are not
            needed.
        left_out: records that are not as the source documents them, and what is dropped.
    """

    memories: list[ForeignMemory] = []  # what is remembered, in the order of the source
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


_INHERITED = (
    "user_id", "user_uuid", "agent_id", "run_id", "thread_id", "thread_uuid", "session_id",
    "created_at",
)  # fmt: skip
"""The fields of an object around records that count for those of them that do not have them."""

_MAX_DEPTH = 8  # how deep lists of records may lie within each other (G10)


class Export(NamedTuple):
    """An export before parsing."""

    data: bytes  # its bytes; see `decoded_lines`
    name: str  # the file or the address, for places
    zone: tzinfo  # the zone of times that name none

    def parse_json(self, left_out: LeftOut) -> JsonFile:
        """Return the JSON values of the export.

        Raises:
            ForeignError: nothing in it is JSON.
        """
        lines = decoded_lines(io.BufferedReader(io.BytesIO(self.data)), self.name)
        parsed = parse_file(lines, self.name, left_out)
        if not parsed.lines:
            first = next(iter(left_out.named), None)
            raise ForeignError(first.why if first else f"{self.name}: not JSON: it is empty")
        return parsed

    def records(self, lists: Sequence[str], left_out: LeftOut) -> Iterator[Record]:
        """Yield the records of an export.

        The export is a JSON list of records; an object that has them in lists; or a record, or such
        an object, on each line. Other lists beside these are dropped, and counted by their name.

        Raises:
            ForeignError: nothing in it is JSON.
        """
        for line in self.parse_json(left_out).lines:
            for where, value in _objects_of(line.value, line.where, lists, left_out, _MAX_DEPTH):
                yield Record(where, value, self.zone)


def _objects_of(
    value: Any, where: str, lists: Sequence[str], left_out: LeftOut, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in a value that hold no lists of others, each with its place."""
    if isinstance(value, list) and depth:
        for number, item in enumerate(value, 1):
            yield from _objects_of(item, f"{where}: item {number}", lists, left_out, depth - 1)
    elif not isinstance(value, dict):
        why = f"expected an object, not {type(value).__name__}"
        left_out.refuse(RefusedInput(where, f"{where}: {why}"))
    elif depth and any(isinstance(value.get(key), list) for key in lists):
        yield from _objects_within(value, where, lists, left_out, depth)
    else:
        yield where, value


def _objects_within(
    value: dict[str, Any], where: str, lists: Sequence[str], left_out: LeftOut, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    around = {name: value[name] for name in _INHERITED if value.get(name) is not None}
    for key, held in value.items():
        if not isinstance(held, list):
            continue
        if key not in lists:
            left_out.drop(key, len(held))
            continue
        for place, item in _objects_of(held, f"{where}: {key}", lists, left_out, depth - 1):
            yield place, item | {n: v for n, v in around.items() if item.get(n) is None}


def parse_records(
    records: Iterable[Record], read: Callable[[Record], ParsedRecord], left_out: LeftOut
) -> ParsedExport:
    """Parse every record; one that is refused is reported, and the others are used.

    Args:
        read: parses one of them; raises `ForeignError`.

    Raises:
        ForeignError: there is no record, and something that should be one.
    """
    done, count = ParsedExport(left_out=left_out), 0
    for count, record in enumerate(records, 1):  # noqa: B007  counted for below
        try:
            parsed = _with_end(read(record), record)
        except ForeignError as error:
            left_out.refuse(RefusedInput(record.where, str(error)))
            continue
        if parsed is None or not parsed.text.strip():
            done.skipped += 1
        elif isinstance(parsed, ForeignMemory):
            done.memories.append(parsed)
        else:
            done.messages.append(parsed)
    if not count and left_out.named:
        raise ForeignError(left_out.named[0].why)
    return done


def _with_end(parsed: ParsedRecord, record: Record) -> ParsedRecord:
    if not isinstance(parsed, ForeignMemory) or parsed.until is not None:
        return parsed
    return msgspec.structs.replace(parsed, until=end_of(record))


def parse_export(
    export: Export, lists: Sequence[str], read: Callable[[Record], ParsedRecord]
) -> ParsedExport:
    """Parse every record of an export; see `Export.records` and `parse_records`."""
    left_out = LeftOut()
    return parse_records(export.records(lists, left_out), read, left_out)
