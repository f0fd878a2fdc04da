"""``memorybus export``: the events of a person, as lines that `memorybus ingest` reads."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from memorybus import private
from memorybus.config.settings import Settings
from memorybus.events import Envelope
from memorybus.ids import new_mark
from memorybus.operations import journal
from memorybus.operations.ingest.event_lines import EventLines
from memorybus.query.query import Query

NAMED = 1_000
"""Events that cannot be written and are named each; later ones are only counted (G10)."""


class Exported(msgspec.Struct, kw_only=True):
    """What an export did; its ``--json``.

    Attributes:
        file: where it is; "" for standard output.
        events: lines written.
        left_out: ids of events that a line cannot hold unchanged, and why: the first `NAMED`.
        left_out_events: how many there are.
        unread: what of the past could not be read, each part with its reason.
    """

    file: str = ""
    events: int = 0
    left_out: dict[str, str] = {}
    left_out_events: int = 0
    unread: list[str] = []

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return not (self.left_out_events or self.unread)


def events(
    settings: Settings, query: Query, since: int | None, until: int | None, unread: list[str]
) -> Iterator[Envelope]:
    """Yield what the history has of a query, in the order in which the log took it.

    Volatile events (`TurnStarted`) are left out, as the archive leaves them out. What is forgotten
    is not read. Memory does not grow with the history.

    Args:
        settings: which log.
        query: whose events.
        since: the earliest time of an event, milliseconds.
        until: the time before which events are wanted, milliseconds.
        unread: what cannot be read is told here, and the rest is read.

    Raises:
        LogError: Redis is away, or the log cannot be used as it is.
    """
    history = journal.checked_history(settings)
    with contextlib.closing(history):
        for event in history.scan(query, since, until, damage=unread):
            if not event.envelope.event.volatile:
                yield event.envelope


def lines(
    envelopes: Iterable[Envelope], done: Exported, step: Callable[[], None]
) -> Iterator[bytes]:
    """Yield each event's line with its end, and note in `done` what came of it."""
    writer = EventLines()
    for envelope in envelopes:
        step()
        try:
            line = writer.line(envelope)
        except ValueError as error:
            done.left_out_events += 1
            if len(done.left_out) < NAMED:
                done.left_out[envelope.id] = str(error)
            continue
        done.events += 1
        yield line + b"\n"


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file that is there whole or not at all, and that only its user can read.

    What was there under its name stays until then, also if this is interrupted.

    Raises:
        OSError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{new_mark()}")
    try:
        with open(fresh, "xb", opener=private.opener) as out:
            out.writelines(parts)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
