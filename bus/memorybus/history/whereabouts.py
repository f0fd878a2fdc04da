"""Finds out where an event is: in the log, in a segment of the archive, or in both."""

import msgspec

from memorybus.errors import ArchiveError
from memorybus.events import Position
from memorybus.history.sources import Sources


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """The places where an event is.

    Attributes:
        in_log: whether the log still has it.
        sealed: whether the archive has it, too, according to Redis.
        segment: the archive's file that has it; "" if none has it, or the archive cannot be read.
    """

    in_log: bool
    sealed: bool
    segment: str = ""


def find_whereabouts(sources: Sources, position: Position) -> Whereabouts:
    """Return where the event at a position lies."""
    partition, entry = position.partition, position.entry
    sealed = sources.reader.sealed_number(partition) >= position.n
    in_log = sources.log.has_entry(partition, entry)
    segment = _segment(sources, partition, entry) if sealed else ""
    return Whereabouts(in_log=in_log, sealed=sealed, segment=segment)


def _segment(sources: Sources, partition: int, entry: str) -> str:
    try:
        archive = sources.archive()
        return archive.segment_of(partition, entry) if archive else ""
    except ArchiveError:
        return ""
