"""Reading a partition's archive backward: segments, groups and rows, newest first."""

from collections.abc import Iterator

from memorybus.archive.damage import tell
from memorybus.archive.decoding import Wanted, row_before
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.reader import CONTENT
from memorybus.archive.partition import SealedPartition, last_before
from memorybus.archive.rows import events_at, may_pass
from memorybus.errors import ArchiveDamaged, ArchiveError
from memorybus.log.entry import LoggedEvent, moment
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder

_PAGE = 100
"""Rows decoded at once: whoever wants the newest few wants no more."""

_BEGINNING = (0, 0)


class BackRows:
    """Reads one partition's rows, newest first. Belongs to one thread."""

    def __init__(self, part: SealedPartition, decoder: Decoder) -> None:
        """Read nothing yet."""
        self._part = part
        self._decoder = decoder
        self._partition = part.of.partition

    def read(self, before: str, plan: Plan, damage: list[str] | None) -> Iterator[LoggedEvent]:
        """See `Archive.back`."""
        wanted = Wanted(plan, self._part.shared.forgotten())
        place = moment(before)
        segments = self._part.refreshed().segments
        while (segment := last_before(segments, place)) is not None:
            wanted = wanted.hiding(self._part.shared.forgotten())
            last = moment(segment.last.entry)
            if last < place:
                self._check(last, damage)
            try:
                for event in self._rows(segment, place, wanted):
                    yield event
                    place = moment(event.position.entry)
            except ArchiveError as error:  # an object store does not give what was deleted
                self._part.forget()
                segments = self._part.refreshed().segments
                again = last_before(segments, place)
                if again is not None and again.sha256 != segment.sha256:
                    continue  # it was compacted away meanwhile
                if not isinstance(error, ArchiveDamaged):
                    raise
                tell(error, damage)
            place = moment(segment.first.entry)
        self._check(_BEGINNING, damage)

    def _check(self, place: tuple[int, int], damage: list[str] | None) -> None:
        """Tell if what follows a place is missing in the manifest."""
        try:
            self._part.after(place)
        except ArchiveDamaged as error:
            tell(error, damage)

    def _rows(
        self, segment: Segment, place: tuple[int, int], wanted: Wanted
    ) -> Iterator[LoggedEvent]:
        """Yield a segment's rows before a moment; nothing if the manifest tells that all go."""
        if may_pass(segment, wanted):
            return
        names = wanted.reads if wanted.filters else CONTENT
        for index in range(self._part.opened(segment).group_before(place), -1, -1):
            with self._part.telling(segment):
                group = self._part.group(segment, index, names)
                rows = range(row_before(group, place) + 1)
                reasons = wanted.reasons(self._partition, group, rows)
            for end in range(len(rows), 0, -_PAGE):
                some = rows[max(0, end - _PAGE) : end]
                why = reasons[some.start : some.stop]
                with self._part.telling(segment):
                    found = events_at(self._part, segment, index, some, why, group, self._decoder)
                yield from reversed(found)
