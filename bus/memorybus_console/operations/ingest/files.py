"""``memorybus ingest FILE…``: publishes recorded conversations, and exported events."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from memorybus.config.settings import Settings
from memorybus.errors import AccessDenied, CorruptEnvelope, LogUnavailable
from memorybus.events import LARGEST_BODY, Envelope, UnknownEvent
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.wire.codec import Decoder

from memorybus_console.operations.ingest.conversations import (
    ParsedFile,
    ingest_conversations,
    load_files,
)
from memorybus_console.operations.ingest.new_events import ImportResult, publish_new
from memorybus_console.operations.ingest.reading.json_files import BYTE_ORDER_MARK, decoded_lines
from memorybus_console.operations.ingest.reading.model import (
    ReadingOptions,
    TranscriptError,
    by_speaker,
)
from memorybus_console.operations.ingest.report import (
    IngestReport,
    OnStage,
    RefusedInput,
    UnreadableInput,
    sum_reports,
)

_OWNERS_IN_FILE = "its events name their user and agent; leave out --user and --agent"


def ingest_files(
    settings: Settings,
    files: Sequence[Path],
    *,
    user: str | None,
    agent: str | None,
    user_from_name: bool = False,
    on_stage: OnStage,
) -> IngestReport:
    """Publish what can be read of every file of conversations, and every whole file of events.

    Args:
        user: the person of the conversations; None for the speaker that a file names.
        agent: the agent of the conversations; None for the settings' default.

    Raises:
        SpoolFull: the spool's bound is reached; what was published stays published.
        ArchiveUnavailable: the log's archive cannot say which events are new.
    """
    event_files = [path for path in files if holds_events(path)]
    options = ReadingOptions(settings.zone, settings.event_max_bytes)
    talks = [path for path in files if path not in event_files]
    conversations, refused = load_files(talks, options)
    if user_from_name:
        conversations = list(map(_with_speakers_apart, conversations))
    reports = [IngestReport(refused=tuple(refused))]
    if not conversations and not event_files:
        return reports[0]
    before = count_logged(settings)
    if conversations:
        reports.append(
            ingest_conversations(
                settings,
                conversations,
                user=user,
                agent=agent,
                on_stage=on_stage,
            )
        )
    named = bool(user or agent)
    reports += [_ingest_events(settings, path, on_stage, named=named) for path in event_files]
    return note_growth(settings, sum_reports(reports), before)


def _with_speakers_apart(file: ParsedFile) -> ParsedFile:
    return msgspec.structs.replace(file, transcript=by_speaker(file.transcript))


def _ingest_events(
    settings: Settings, path: Path, on_stage: OnStage, *, named: bool
) -> IngestReport:
    """Publish a file of events if all of it can be read, unless the command names its owner."""
    if named:
        return IngestReport(refused=(RefusedInput(str(path), _OWNERS_IN_FILE),))
    try:
        count = _count_events(path, on_stage)
    except TranscriptError as error:
        return IngestReport(refused=(RefusedInput.unreadable(str(path), error),))
    report = publish_source(settings, str(path), events_of(path), count, on_stage)
    return msgspec.structs.replace(report, formats={"exported events": report.files})


def _count_events(path: Path, on_stage: OnStage) -> int:
    """Return how many events a file holds."""
    count = 0
    with on_stage("read", "events", None) as step:
        for _ in events_of(path):
            count += 1
            step()
    return count


def publish_source(
    settings: Settings,
    name: str,
    envelopes: Iterable[Envelope],
    count: int,
    on_stage: OnStage,
    untimed: Collection[str] = (),
) -> IngestReport:
    """Publish those events of a source that are new to the log.

    Args:
        untimed: the ids of events whose time is only that of the source.

    Raises:
        ArchiveUnavailable: the log's archive cannot say which events are new.
    """
    try:
        with on_stage("publish", "events", count) as step:
            done = publish_new(settings, envelopes, step, execute=True, untimed=untimed)
    except TranscriptError as error:
        return IngestReport(refused=(RefusedInput.unreadable(name, error),))
    except LogUnavailable as error:
        return IngestReport(refused=(RefusedInput(name, str(error)),))
    return IngestReport(
        files=1,
        events=done.events,
        level="logged" if done.logged else "spooled",
        refused=_refused_events(name, done),
        refused_turns=done.refused_events,
    )


def _refused_events(name: str, done: ImportResult) -> tuple[RefusedInput, ...]:
    named = [RefusedInput(f"{name}: event {event}", why) for event, why in done.refused.items()]
    unnamed = done.refused_events - len(named)
    more = [RefusedInput(name, f"{unnamed} more events were refused")] if unnamed else []
    return (*named, *more)


def count_logged(settings: Settings) -> int | None:
    """Return how many events the log has ever taken, or None if Redis does not answer."""
    with closing(connect_redis(settings)) as redis:
        log = EventLog(redis, settings)
        try:
            log.open()
            return sum(head.n for head in log.heads())
        except AccessDenied:
            raise
        except LogUnavailable:
            return None


def note_growth(settings: Settings, report: IngestReport, before: int | None) -> IngestReport:
    """Return the report with the number of events by which the log has grown.

    The number is unknown if Redis did not answer before, or has not taken everything since.
    """
    if before is None or report.level != "logged":
        return report
    after = count_logged(settings)
    return msgspec.structs.replace(report, new_events=None if after is None else after - before)


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
