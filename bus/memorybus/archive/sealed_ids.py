"""The ids of all that was ever sealed, also of what was taken out since; nothing else is read."""

from collections.abc import Iterator, Sequence

from memorybus.archive.decoding import rows_after
from memorybus.archive.format.columns import hex_ids
from memorybus.archive.format.manifest import Segment
from memorybus.archive.partition import SealedPartition
from memorybus.errors import ArchiveError
from memorybus.log.entry import moment
from memorybus.log.stream import START

_Moment = tuple[int, int]


def ids_of(part: SealedPartition) -> Iterator[Sequence[str]]:
    """Yield the ids of a partition's rows, a group at a time.

    Raises:
        ArchiveDamaged: a part of it cannot be read.
    """
    place = moment(START)
    while (segment := part.after(place)) is not None:
        try:
            for reached, ids in _groups(part, segment, place):
                yield ids
                place = reached
        except ArchiveError:
            if part.is_replaced(segment, place):
                continue
            raise
        place = moment(segment.last.entry)


def _groups(
    part: SealedPartition, segment: Segment, place: _Moment
) -> Iterator[tuple[_Moment, Sequence[str]]]:
    """Yield the ids of a segment's rows after a place, each time with how far they go."""
    reader = part.opened(segment)
    for index in range(reader.group_after(place), reader.groups):
        with part.telling(segment):
            group = part.group(segment, index, ("id",))
            ids = hex_ids(group.table.column("id"))[rows_after(group, place) :]
            reached = moment(group.entries[len(group.entries) - 1])
        yield reached, ids
