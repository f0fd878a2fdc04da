"""Finds out whether a partition still has every number that was given, and which it lacks; pure.

Entries are numbered densely, so comparing counter, log and archive shows which ranges of numbers
are missing: before the first entry (a trimmed or deleted stream), behind the last one, and in the
middle where there are fewer entries than numbers. Only what the archive has sealed may be missing
(G7); everything else that is missing is data loss.
"""

from collections.abc import Iterator

import msgspec

from memorybus.log.entry import Place
from memorybus.redis.keys import lane_name


class PartitionView(msgspec.Struct, frozen=True, kw_only=True):
    """A partition at one moment."""

    length: int = 0  # how many entries the stream has, including those of other programs
    n: int = 0  # the last number given; 0 for none
    sealed: int = 0  # the number up to which the log may be trimmed
    first: Place | None = None  # our first entry; None if none was found
    last: Place | None = None  # our last entry
    before: Place | None = None  # our last entry up to the place that the caller asked about
    after: Place | None = None  # our first entry behind that place
    sealed_at: str = ""  # the id of the entry with the number `sealed`; "" if it is not known
    unsealed: Place | None = None  # our first entry behind `sealed_at`
    set_back: range = range(0)  # the numbers that the archive had and this Redis had never given


class Gap(msgspec.Struct, frozen=True):
    """Lost numbers: `missing` of those from `first` to `last`, both included, are gone."""

    partition: int
    first: int
    last: int
    missing: int
    # the field of the hash of losses that names them, because the log itself no longer shows that
    # they are gone (`memorybus.log.losses`); "" if it does
    record: str = ""
    # when a worker found that out (ISO 8601, UTC); null without a record
    found_at: str | None = None

    def __str__(self) -> str:
        if not self.missing:
            return "it held no event when it was last read"
        place = f"partition {lane_name(self.partition)}"
        if self.missing == self.last - self.first + 1:
            return f"{place}: events {self.first} to {self.last} are gone"
        return f"{place}: {self.missing} of the events {self.first} to {self.last} are gone"


NO_EVENT_SEEN = Gap(0, 0, 0, 0)
"""Stands for what a wiped log lost that held no event when a worker last looked."""


class Numbers(msgspec.Struct, frozen=True):
    """What a scan of consecutive entries found about their numbers."""

    upto: Place  # where the scan ended
    done: bool  # whether that is the end of the stream
    read: int = 0  # how many entries the scan read
    foreign: int = 0  # how many of them another program wrote
    # pairs of neighbouring numbers that do not follow each other
    breaks: tuple[tuple[int, int], ...] = ()

    def join(self, other: "Numbers") -> "Numbers":
        return Numbers(
            other.upto,
            other.done,
            self.read + other.read,
            self.foreign + other.foreign,
            self.breaks + other.breaks,
        )

    @property
    def restarted(self) -> int:
        """The number after which the numbers began again; 0 if they never did."""
        return next((before for before, after in self.breaks if after <= before), 0)


def count_mismatch(view: PartitionView) -> int:
    """Return how many numbers have no entry, minus how many entries have no number."""
    if view.first is None or view.last is None:
        return -view.length
    return view.last.n - view.first.n + 1 - view.length


def unsealed_start(view: PartitionView) -> Place:
    """Return the place behind which no number of a partition may be missing."""
    if view.first is not None and not (view.sealed_at and _overlaps(view)):
        return Place("0-0", view.first.n - 1)
    return Place(view.sealed_at or "0-0", view.sealed)


def find_gaps(partition: int, view: PartitionView, numbers: Numbers | None = None) -> list[Gap]:
    """Return the numbers that neither the log nor the archive has any more, in order."""
    if view.first is None or view.last is None:
        # If many foreign entries come first, nobody knows where our entries begin.
        return [] if view.length else _gap_between(partition, view.sealed + 1, view.n)
    return [
        *_gap_between(partition, view.sealed + 1, view.first.n - 1),
        *(_inner_gaps(partition, view, numbers) if numbers else ()),
        *_gap_between(partition, max(view.last.n, view.sealed) + 1, view.n),
    ]


def _inner_gaps(partition: int, view: PartitionView, numbers: Numbers) -> Iterator[Gap]:
    """Yield what is missing between the first entry and the last: at most two ranges."""
    holes = [(max(before, view.sealed) + 1, after - 1) for before, after in numbers.breaks]
    holes = [(first, last) for first, last in holes if first <= last]
    missing = sum(last - first + 1 for first, last in holes)
    if holes:
        yield Gap(partition, holes[0][0], max(last for _, last in holes), missing)
    if numbers.done or numbers.restarted or _overlaps(view) or view.last is None:
        return
    # Behind the end of the scan, only the counts say how many are gone.
    unexplained = count_mismatch(view) + numbers.foreign - missing
    if unexplained > 0:
        yield Gap(partition, numbers.upto.n + 1, view.last.n - 1, unexplained)


def _overlaps(view: PartitionView) -> bool:
    return view.first is not None and view.sealed >= view.first.n


def count_foreign(view: PartitionView, numbers: Numbers | None) -> int:
    return max(-count_mismatch(view), numbers.foreign if numbers else 0)


def find_lost_tail(partition: int, view: PartitionView, settled: Place) -> Gap | None:
    """Return the numbers that the log lost at its end and gave again, or None."""
    survivor = max(view.before.n if view.before else 0, view.sealed)
    renumbered = view.n < settled.n or (view.after is not None and view.after.n <= settled.n)
    if survivor >= settled.n or not renumbered:
        return None
    return Gap(partition, survivor + 1, settled.n, settled.n - survivor)


def find_archived_only(view: PartitionView) -> range:
    """Return the numbers that only the archive has, since Redis was set back to an older state."""
    return view.set_back or range(view.n + 1, view.sealed + 1)


def set_back_numbers(noted: str) -> range:
    """Return the numbers that a partition's state names as `set_back`; none if it names none."""
    first, _, last = noted.partition("-")
    is_range = first.isdecimal() and last.isdecimal()
    return range(int(first), int(last) + 1) if is_range else range(0)


def find_lost_archive(
    partition: int, sealed: int, end: Place | None, first: Place | None
) -> Gap | None:
    """Return the sealed numbers that both archive and log have lost; None if there are none.

    If something was sealed, an empty archive counts as lost and is never begun again: its disk may
    not be mounted.
    """
    archived = end.n if end else 0
    if sealed <= archived:
        return None
    if end is not None and first is not None and first.n <= archived + 1:
        return None  # the archive is an older one; the log still has all that followed
    last = min(sealed, first.n - 1) if first is not None and first.n > archived + 1 else sealed
    return Gap(partition, archived + 1, last, last - archived)


def _gap_between(partition: int, first: int, last: int) -> list[Gap]:
    return [Gap(partition, first, last, last - first + 1)] if first <= last else []
