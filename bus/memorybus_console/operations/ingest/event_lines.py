"""Converts events to the lines of JSON that `memorybus export` writes, and back.

A line is an envelope with the fields of the wire format, in JSON instead of msgpack: ``id``,
``key``, ``scope``, ``session``, ``at`` (milliseconds), ``event`` with its ``type``, and ``v`` if
the version is not 1. The log's decoder also brings old versions in lines up to date.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from memorybus.errors import CorruptEnvelope
from memorybus.events import LARGEST_BODY, Envelope, UnknownEvent
from memorybus.wire.codec import Decoder

from memorybus_console.operations.ingest.reading.json_files import BYTE_ORDER_MARK, decoded_lines
from memorybus_console.operations.ingest.reading.model import TranscriptError
from memorybus_console.operations.ingest.report import UnreadableInput

_LINE_FIELDS = frozenset(("id", "key", "scope", "session", "at", "event"))
"""Fields that every line has; no message of a conversation has them all."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_UNWRITABLE = (*_UNREADABLE, TypeError, UnicodeEncodeError)
_PEEK_BYTES = LARGEST_BODY
"""How many bytes of the first line are read to recognize a file: as many as an event may have."""


class EventLines:
    """Writes and reads lines of events. Use from one thread."""

    def __init__(self) -> None:
        self._decoder = Decoder()

    def encode(self, envelope: Envelope) -> bytes:
        """Return an event as a line, without its end, that `decode` turns into the same event.

        Raises:
            ValueError: JSON cannot hold the event (bytes, NaN): no publisher makes such an event,
                only damage does.
        """
        event = envelope.event
        unknown = isinstance(event, UnknownEvent)
        version = event.wire_version if isinstance(event, UnknownEvent) else event.version
        wire = msgspec.structs.replace(envelope, v=version)
        try:
            line = msgspec.json.encode(_unknown_event_fields(wire) if unknown else wire)
            same = self.decode(line) == wire
        except (*_UNWRITABLE, CorruptEnvelope) as error:
            raise ValueError(f"JSON cannot hold it: {error}") from error
        if not same:
            raise ValueError("JSON cannot hold it unchanged")
        return line

    def decode(self, line: bytes) -> Envelope:
        """Return the event of a line; an event of a later release becomes an `UnknownEvent`.

        Raises:
            CorruptEnvelope: the line is not JSON, or not an event.
        """
        try:
            body = msgspec.msgpack.encode(msgspec.json.decode(line))
        except (*_UNREADABLE, OverflowError) as error:
            raise CorruptEnvelope(f"not JSON that can be read: {error}") from error
        return self._decoder.decode(body)


def _unknown_event_fields(envelope: Envelope) -> dict[str, Any]:
    """Return the fields of an unknown event's envelope, with its own fields decoded."""
    fields: dict[str, Any] = msgspec.to_builtins(envelope, builtin_types=(bytes,))
    return fields | {"event": msgspec.msgpack.decode(fields["event"]["raw"])}


def holds_events(path: Path) -> bool:
    """Return whether a file begins with an event, and so is not a conversation.

    A file that cannot be read counts as one without events: its next reader reports why. A pipe is
    not read, because bytes that are read from it are lost for the next reader.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = next(decoded_lines(file, str(path), _PEEK_BYTES), b"")
        value = msgspec.json.decode(first.removeprefix(BYTE_ORDER_MARK))
    except (OSError, UnreadableInput, *_UNREADABLE):
        return False
    return isinstance(value, dict) and value.keys() >= _LINE_FIELDS


def events_of(path: Path) -> Iterator[Envelope]:
    """Yield the events of a file, line by line; memory use does not grow with the file.

    Raises:
        TranscriptError: a line is not an event (its place is ``file:line``), or the file cannot be
            read.
    """
    lines = EventLines()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(decoded_lines(file, str(path)), 1):
                if line.strip():
                    yield _decode_line(lines, line, f"{path}:{number}")
    except OSError as error:
        raise TranscriptError(error.strerror or str(error), str(path)) from error
    except UnreadableInput as error:
        raise TranscriptError(error.why, error.place) from error


def _decode_line(lines: EventLines, line: bytes, where: str) -> Envelope:
    try:
        return lines.decode(line.removeprefix(BYTE_ORDER_MARK))
    except CorruptEnvelope as error:
        raise TranscriptError(str(error), where) from error
