"""Archives for tests: entries as the log has them, sealed into a directory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from memorybus.archive.archive import Archive
from memorybus.archive.format.parquet import RawEntry
from memorybus.archive.objects.local import LocalObjects
from memorybus.events import Envelope, KnownEvent, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus.log.entry import LoggedEvent, decode_entry
from memorybus.wire.codec import Decoder, Encoder

LOG = "0198f2c4a1b27c3d8e4f5a6b7c8d9e10"
"""A log's id."""


def raw(n: int, *fields: bytes) -> RawEntry:
    """Return the n-th entry: three of them to a millisecond."""
    return RawEntry(f"{1_760_000_000_000 + n // 3}-{n % 3}", n, fields)


def entry(
    n: int, event: KnownEvent | None = None, *, session: str = "", again: bool = False
) -> RawEntry:
    """Return the n-th entry as a publisher writes it."""
    name = session or f"s-{n % 7}"
    envelope = Envelope(
        id=derived_id("archived", n),
        key=f"session:{name}",
        scope=Scope(agent="a", user=f"u-{n % 3}", platform="cli"),
        session=SessionRef(id=name, root=name),
        at=1_750_000_000_000 + n,
        event=event or TurnCompleted(user=f"question {n}", assistant="answer " * (n % 9)),
    )
    body = Encoder(200).pack(msgspec.msgpack.encode(envelope))
    return raw(n, b"n", b"%d" % n, b"r" if again else b"e", body)


def entries(count: int, first: int = 1) -> list[RawEntry]:
    """Return some entries in order."""
    return [entry(n) for n in range(first, first + count)]


def as_logged(rows: Sequence[RawEntry], partition: int = 0) -> list[LoggedEvent]:
    """Return entries as the log would give them."""
    decoder = Decoder()
    found = (decode_entry(partition, row.entry, row.fields, decoder) for row in rows)
    return [event for event in found if event is not None]


def archive_in(directory: Path, log: str = LOG) -> Archive:
    """Return the archive in a directory, as a process that has never seen it."""
    return Archive(LocalObjects(directory), "t", log)


def pages(archive: Archive, partition: int = 0, page: int = 70) -> Iterator[LoggedEvent]:
    """Yield all that is sealed, read page by page."""
    after = "0-0"
    while found := archive.read(partition, after, page):
        yield from found
        after = found[-1].position.entry


def sealed(directory: Path, segments: int, size: int = 20, partition: int = 0) -> list[LoggedEvent]:
    archive, rows = archive_in(directory), entries(segments * size)
    for start in range(0, len(rows), size):
        archive.publish(partition, rows[start : start + size])
    return as_logged(rows, partition)
