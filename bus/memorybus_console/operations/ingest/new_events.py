"""Publishes events that have ids already into a log that may hold some of them.

Events that this log ever had are skipped by their ids, including forgotten ones and those past
their retention. The known ids are in a temporary file, so that memory use does not grow with either
history.
"""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.paced import PacedPublisher
from memorybus.archive.location import archive_of, check_reaches, views_of
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveUnavailable, EventError
from memorybus.events import Envelope, UnknownEvent
from memorybus.history.forgotten import Forgotten
from memorybus.history.history import History
from memorybus.history.scratch_index import ScratchIndex
from memorybus.log.continuity import PartitionView
from memorybus.log.stream import START, EventLog
from memorybus.query.query import row_of
from memorybus.redis.connect import connect_redis
from memorybus.text.display import one_line

from memorybus_console.result import Remark, Result

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive


_CACHE_KIB = 65_536  # KiB of the file that SQLite keeps in memory (G10)


_MAX_SHOWN = 20  # how many refused events people see


class KnownIds(ScratchIndex):
    """A set of ids; see `ScratchIndex`.

    Every method raises `ArchiveUnavailable` if the disk is full.
    """

    def __init__(self) -> None:
        super().__init__(
            f"pragma cache_size = -{_CACHE_KIB}; "
            "create table ids(id blob primary key) without rowid"
        )

    def add(self, ids: Iterable[str]) -> None:
        """Remember some ids (32 hex digits each)."""
        rows = [(bytes.fromhex(event_id),) for event_id in ids]
        with _translated_errors():
            self._db.execute("begin")
            self._db.executemany("insert or ignore into ids values (?)", rows)
            self._db.execute("commit")

    def is_new(self, event_id: str) -> bool:
        row = (bytes.fromhex(event_id),)
        with _translated_errors():
            return self._db.execute("insert or ignore into ids values (?)", row).rowcount > 0


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ArchiveUnavailable(
            f"the temporary file of known ids: {error}; make room for temporary files, or "
            f"set SQLITE_TMPDIR to another directory"
        ) from error


FLUSH_TIMEOUT = 60.0  # seconds that an import waits until Redis has everything

MAX_NAMED = 1_000  # how many refused events are named; further ones are only counted (G10)

_PAGE = 500


class ImportResult(Result, frozen=True, kw_only=True):
    """What an import did, or would do.

    Attributes:
        refused: ids of events that this release cannot publish unchanged, or that were forgotten,
            and why: the first 1,000 of them.
        executed: whether the import was carried out, not only planned.
        logged: whether Redis has everything that was published.
    """

    executed: bool
    events: int = 0
    new: int = 0
    published: int = 0
    refused: dict[str, str]
    refused_events: int = 0
    logged: bool = True

    def headline(self) -> str:
        done = f"; {self.published} published" if self.executed else ""
        return f"{self.events} events, {self.new} new to this log{done}"

    def notes(self) -> Iterator[Remark]:
        for event, why in list(self.refused.items())[:_MAX_SHOWN]:
            yield Remark(f"refused: {event} ({one_line(why)})", "red")
        if self.refused_events > _MAX_SHOWN:
            yield Remark(f"{self.refused_events} refused in all; --json names more", "red")
        if not self.logged:
            yield Remark("Redis has not taken all of them yet; `memorybus up` sends the rest")

    def failed(self) -> bool:
        return bool(self.refused_events)

    def is_plan(self) -> bool:
        return not self.executed


def publish_new(
    settings: Settings,
    envelopes: Iterable[Envelope],
    step: Callable[[], None],
    *,
    execute: bool,
    untimed: Collection[str] = (),
) -> ImportResult:
    """Publish the events that this log never had, in their order, under their own ids and times.

    What a tombstone of this log hides is refused, also under an id that the log never had.

    Args:
        envelopes: the events; read once, one at a time.
        execute: whether to publish; otherwise they are only counted.
        untimed: the ids of events whose time is only that of their file.

    Raises:
        LogUnavailable: Redis is away, so that it is unknown what is new.
        ArchiveUnavailable: this log's own archive cannot say which events it has.
        LogStalled: the log accepts nothing; the next run publishes the rest.
    """
    count: Counter[str] = Counter()
    refused: dict[str, str] = {}
    with KnownIds() as ids:
        _note_known_ids(settings, ids)
        forgotten = _read_forgotten(settings)
        with MemoryBus.connect(settings) as bus:
            paced = PacedPublisher(bus, SYSTEM, lambda unsent: None)
            for envelope in envelopes:
                step()
                is_new = ids.is_new(envelope.id)
                why = _why_refused(forgotten, envelope, timed=envelope.id not in untimed)
                if execute and is_new and not why:
                    why = _publish_unchanged(bus, paced, envelope)
                    count["published"] += not why
                if why and len(refused) < MAX_NAMED:
                    refused[envelope.id] = why
                count += Counter(events=1, new=is_new, refused_events=bool(why))
            logged = not execute or bus.flush("logged", FLUSH_TIMEOUT)
    return ImportResult(executed=execute, refused=refused, logged=logged, **count)


def _note_known_ids(settings: Settings, ids: KnownIds) -> None:
    """Note the ids of all events that the log has or had.

    The log is read before the archive: an event that is trimmed meanwhile is sealed by then.
    """
    with closing(connect_redis(settings)) as redis:
        _note_logged_ids(EventLog(redis, settings), ids)
        views = views_of(settings)
        archive = (
            archive_of(redis, settings) if any(view.sealed for view in views.values()) else None
        )
    if archive is not None:
        with closing(archive):
            _note_archived_ids(archive, views, ids)


def _read_forgotten(settings: Settings) -> Forgotten:
    with (
        closing(connect_redis(settings)) as redis,
        closing(History.from_settings(redis, settings)) as history,
    ):
        return Forgotten(history.forgotten_queries())


def _note_logged_ids(log: EventLog, ids: KnownIds) -> None:
    for partition in range(log.partitions):
        after = START
        while page := log.read(partition, after, _PAGE):
            ids.add(event.envelope.id for event in page)
            after = page[-1].position.entry


def _note_archived_ids(
    archive: "Archive", views: Mapping[int, PartitionView], known_ids: KnownIds
) -> None:
    for partition, view in views.items():
        check_reaches(archive, partition, view.sealed)
        for ids in archive.ids(partition):
            known_ids.add(ids)


def _why_refused(forgotten: Forgotten, envelope: Envelope, *, timed: bool) -> str:
    if isinstance(envelope.event, UnknownEvent):
        version = envelope.event.wire_version
        return f"this release does not know its {'type or version' if version else 'form'}"
    row = row_of(envelope if timed else msgspec.structs.replace(envelope, at=0))
    return forgotten.why(row, timed=timed)


def _publish_unchanged(bus: MemoryBus, paced: PacedPublisher, envelope: Envelope) -> str:
    """Publish an event under its own id and time; return why it is refused, "" if it is not."""
    try:
        paced.publish(
            lambda: bus.publish(
                envelope.event,
                key=envelope.key,
                scope=envelope.scope,
                session=envelope.session,
                event_id=envelope.id,
                at=envelope.at,
                trace=envelope.trace,
            )
        )
    except EventError as error:
        return str(error)
    return ""
