"""Where a partition's sealed rows lie: entry, number and event id; nothing else is read."""

from collections.abc import Iterator

import msgspec

from memorybus.archive.decoding import rows_after
from memorybus.archive.format.columns import hex_ids
from memorybus.archive.partition import SealedPartition
from memorybus.log.entry import moment


class Row(msgspec.Struct, frozen=True):
    """A sealed row: the stream entry's id, its dense number, the event's id."""

    entry: str
    n: int
    id: str


def places_of(part: SealedPartition, first: str, last: str) -> Iterator[Row]:
    """Yield the rows from one entry to another, both included, in order.

    Raises:
        ArchiveDamaged: a part of it cannot be read.
    """
    (ms, sequence), end = moment(first), moment(last)
    place = (ms, sequence - 1)
    while (segment := part.after(place)) is not None:
        reader = part.opened(segment)
        for index in range(reader.group_after(place), reader.groups):
            with part.telling(segment):
                group = reader.group(index, ("id",))
                rows = range(rows_after(group, place), group.cut.count)
                ids = hex_ids(group.table.column("id"))
                found = [Row(group.entries[row], group.numbers[row], ids[row]) for row in rows]
            for one in found:
                if moment(one.entry) > end:
                    return
                yield one
        place = moment(segment.last.entry)
