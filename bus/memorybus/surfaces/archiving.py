"""What ``memorybus archive`` does: list, check, write a part elsewhere, take one in."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from memorybus.archive import Archive
from memorybus.archive_checking import Report
from memorybus.archive_place import archive_of
from memorybus.client import MemoryBus
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable, ConfigError, EventError
from memorybus.events import Envelope, UnknownEvent
from memorybus.history import History
from memorybus.keys import lane_name
from memorybus.links import connect_redis
from memorybus.manifest import Segment
from memorybus.object_store_local import LocalObjects
from memorybus.plan import Plan
from memorybus.query import Query
from memorybus.settings import Settings

FLUSH = 60.0
"""Seconds an import waits for Redis to have everything."""

Step = Callable[[], None]


class Listed(msgspec.Struct, frozen=True):
    """One segment, as ``archive ls --json`` shows it."""

    partition: int
    file: str
    first: int
    last: int
    events: int
    kept: int
    bytes: int
    raw: int
    since: int
    until: int
    types: dict[str, int]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did, or would do.

    Attributes:
        events: in the archive that was read.
        new: of these, not in this log yet.
        published: of these, sent.
        refused: ids of events that this release cannot publish unchanged, and why.
        executed: whether anything was to be done.
        logged: whether Redis has all that was sent.
    """

    events: int
    new: int
    published: int
    refused: dict[str, str]
    executed: bool
    logged: bool


def opened(settings: Settings) -> Archive:
    """Return the archive of the log that the settings mean.

    Raises:
        ArchiveUnavailable: the log is not born yet, or its archive lies on another host.
        LogUnavailable: no answer.
    """
    archive = archive_of(connect_redis(settings), settings)
    if archive is None:
        raise ArchiveUnavailable("this log was never written to, so that nothing is archived")
    return archive


def listed(archive: Archive, partitions: int) -> list[Listed]:
    """Return the segments of all partitions, in order."""
    return [_listed(one) for p in range(partitions) for one in archive.segments(p)]


def _listed(one: Segment) -> Listed:
    return Listed(
        one.of.partition,
        f"{lane_name(one.of.partition)}/{one.file}",
        one.first.n,
        one.last.n,
        one.count,
        one.kept,
        one.bytes,
        one.raw,
        one.since,
        one.until,
        one.types,
    )


def checked(archive: Archive, partitions: int, step: Step) -> list[Report]:
    """Return what was found of every file; `step` is called for each."""
    found = []
    for report in archive.verify(range(partitions)):
        found.append(report)
        step()
    return found


def exported(source: Archive, target: Archive, partitions: int, query: Query, step: Step) -> int:
    """Write the sealed part of a log elsewhere, and check it; return its events.

    What the query or a tombstone leaves out keeps its row, without content and owner.

    Raises:
        ConfigError: there is an archive of this log already.
        ArchiveDamaged: a segment cannot be read, or what was written cannot be read back.
    """
    if any(target.segments(p) for p in range(partitions)):
        raise ConfigError(f"{target.where} holds an archive already; name another directory")
    events = 0
    for partition in range(partitions):
        for segment in source.segments(partition):
            events += target.copy(source, segment, query).kept
            step()
    damaged = [one for one in target.verify(range(partitions)) if one.found == "damaged"]
    if damaged:
        raise ArchiveDamaged(f"{target.where}/{damaged[0].file}: {damaged[0].why}")
    return events


def found_in(directory: Path) -> list[tuple[Archive, list[int]]]:
    """Return the archives in a directory, with their partitions.

    Raises:
        ConfigError: there are none.
    """
    homes = sorted({path.parent.parent for path in directory.glob("*/*/p*/manifest-*.jsonl")})
    if not homes:
        raise ConfigError(
            f"{directory} holds no archive: it needs NAMESPACE/LOG/p00/manifest-….jsonl, as "
            f"`memorybus archive export` writes it"
        )
    return [(_at(home), _partitions(home)) for home in homes]


def _at(home: Path) -> Archive:
    return Archive(LocalObjects(home), home.parent.name, home.name)


def _partitions(home: Path) -> list[int]:
    names = sorted({path.parent.name for path in home.glob("p*/manifest-*.jsonl")})
    return [int(name[1:]) for name in names if name[1:].isdigit()]


def imported(
    settings: Settings, directory: Path, query: Query, step: Step, *, execute: bool
) -> Imported:
    """Publish the events of an archive that this log does not have, in their order.

    Raises:
        ArchiveDamaged: a part of it cannot be read; what came before stays published.
        SpoolFull: as `MemoryBus.publish`.
    """
    sources = found_in(directory)
    known = {one.envelope.id for one in History.of(connect_redis(settings), settings).scan()}
    events, fresh, refused = 0, 0, dict[str, str]()
    with MemoryBus.connect(settings) as bus:
        for envelope in _envelopes(sources, query):
            events += 1
            step()
            if envelope.id in known:
                continue
            known.add(envelope.id)
            fresh += 1
            why = _published(bus, envelope) if execute else _unpublishable(envelope)
            refused |= {envelope.id: why} if why else {}
        logged = bus.flush("logged", FLUSH) if execute else True
    published = fresh - len(refused) if execute else 0
    return Imported(
        events=events,
        new=fresh,
        published=published,
        refused=refused,
        executed=execute,
        logged=logged,
    )


def _envelopes(sources: Iterable[tuple[Archive, list[int]]], query: Query) -> Iterator[Envelope]:
    for archive, partitions in sources:
        for partition in partitions:
            for event in archive.scan(partition, Plan(query=query)):
                yield event.envelope


def _unpublishable(envelope: Envelope) -> str:
    unknown = isinstance(envelope.event, UnknownEvent)
    return "this release does not know its type or version" if unknown else ""


def _published(bus: MemoryBus, envelope: Envelope) -> str:
    """Publish an event under its own id and time; return why it was refused, or ""."""
    if why := _unpublishable(envelope):
        return why
    try:
        bus.publish(
            envelope.event,
            key=envelope.key,
            scope=envelope.scope,
            session=envelope.session,
            event_id=envelope.id,
            at=envelope.at,
            trace=envelope.trace,
        )
    except EventError as error:
        return str(error)
    return ""
