"""The ids of all that was ever sealed, also of what was taken out since; nothing else is read."""

from collections.abc import Iterator, Sequence

from memorybus.archive_columns import hex_ids
from memorybus.archive_partition import SealedPartition
from memorybus.log import START
from memorybus.logged import moment


def ids_of(part: SealedPartition) -> Iterator[Sequence[str]]:
    """Yield the ids of a partition's rows, a group at a time.

    Raises:
        ArchiveDamaged: a part of it cannot be read.
    """
    place = moment(START)
    while (segment := part.after(place)) is not None:
        reader = part.opened(segment)
        for index in range(reader.groups):
            yield hex_ids(reader.group(index, ("id",)).table.column("id"))
        place = moment(segment.last.entry)
