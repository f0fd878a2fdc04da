"""Events as lines of JSON: what `memorybus export` writes and `memorybus ingest` reads.

A line is an envelope as the wire has it, in JSON instead of msgpack: ``id``, ``key``, ``scope``,
``session``, ``at`` (milliseconds), ``event`` with its ``type``; ``v`` where the version is not 1.
Old versions are brought up to date as those of the log are, by the same decoder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from memorybus.errors import CorruptEnvelope
from memorybus.events import LARGEST_BODY, Envelope, UnknownEvent
from memorybus.operations.ingest.transcripts import TranscriptError
from memorybus.wire.codec import Decoder

_NAMES = frozenset(("id", "key", "scope", "session", "at", "event"))
"""What every line has, and no message of a conversation."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_UNWRITABLE = (*_UNREADABLE, TypeError, UnicodeEncodeError)
_PEEK = LARGEST_BODY
"""Bytes of the first line that are looked at to tell what a file is: as long as an event may be."""


class EventLines:
    """Writes and reads lines of events. Use from one thread."""

    def __init__(self) -> None:
        """Prepare the decoder once."""
        self._decoder = Decoder()

    def encode(self, envelope: Envelope) -> bytes:
        """Return an event as a line without its end, from which `envelope` makes the same event.

        Raises:
            ValueError: JSON cannot hold the event (bytes, or numbers that are none): nobody
                publishes such a thing, damage makes it.
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
        """Return the event of a line; one of a later release becomes `UnknownEvent`.

        Raises:
            CorruptEnvelope: it is not JSON, or no event.
        """
        try:
            body = msgspec.msgpack.encode(msgspec.json.decode(line))
        except (*_UNREADABLE, OverflowError) as error:
            raise CorruptEnvelope(f"not JSON we can read: {error}") from error
        return self._decoder.decode(body)


def _unknown_event_fields(envelope: Envelope) -> dict[str, Any]:
    """Return an event that this release does not know, with what is inside it."""
    fields: dict[str, Any] = msgspec.to_builtins(envelope, builtin_types=(bytes,))
    return fields | {"event": msgspec.msgpack.decode(fields["event"]["raw"])}


def holds_events(path: Path) -> bool:
    """Say whether a file begins with an event, so that it is no conversation.

    One that cannot be read is none: whoever reads it next says why. A pipe is not looked into,
    since what is read of it is gone.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = file.readline(_PEEK)
        value = msgspec.json.decode(first)
    except (OSError, *_UNREADABLE):
        return False
    return isinstance(value, dict) and value.keys() >= _NAMES


def events_of(path: Path) -> Iterator[Envelope]:
    """Yield the events of a file, line by line: memory does not grow with it.

    Raises:
        TranscriptError: a line that is no event, with ``file:line``; the file cannot be read.
    """
    lines = EventLines()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _decode_line(lines, line, f"{path}:{number}")
    except OSError as error:
        raise TranscriptError(f"{path}: {error.strerror or error}") from error


def _decode_line(lines: EventLines, line: bytes, where: str) -> Envelope:
    try:
        return lines.decode(line)
    except CorruptEnvelope as error:
        raise TranscriptError(f"{where}: {error}") from error
