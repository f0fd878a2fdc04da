"""Decides which events of a partition may be sealed and trimmed now; pure."""

from collections.abc import Iterable, Sequence

import msgspec
from memorybus.archive.format.parquet import RawEntry
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.log.continuity import Gap
from memorybus.log.entry import entry_ms, number_of
from memorybus.log.inspection import PartitionState

PAGE = 500  # the most entries that are read at once
FULL_SEGMENT_BYTES = 32 << 20
"""Bytes of bodies after which a segment is full, however few its events (G10).

This is a goal; the format's own bound is `memorybus.archive.format.parquet.SEGMENT_BYTES`.
"""

_TRIM_SLACK_SECONDS = 60.0
"""Seconds by which trimming may be late, so that it need not be done at every look."""


class DueArchiving(msgspec.Struct, frozen=True):
    """What has to be done with a partition."""

    seal: bool = False  # a segment is ready
    trim: bool = False  # some sealed events have left the hot window

    def __bool__(self) -> bool:
        return self.seal or self.trim


class NumbersGivenTwice(MemoryBusError):
    """A partition's numbers do not ascend: some were assigned twice, so they give no order."""

    def __init__(self, entry: str, n: int, after: int) -> None:
        super().__init__(f"entry {entry} has the number {n}, but {after} came before it")
        self.n = n  # the first of them


def find_due(state: PartitionState, settings: Settings, *, force: bool = False) -> DueArchiving:
    first = state.view.unsealed
    if first is None:
        return DueArchiving(seal=_is_hidden(state), trim=_is_trimmable(state, settings))
    age = (state.now_ms - entry_ms(first.entry)) / 1000
    ripe = age >= settings.seal_after
    full = count_ripe_events(state) >= settings.segment_events
    old = age >= settings.segment_age
    return DueArchiving(seal=ripe and (force or full or old), trim=_is_trimmable(state, settings))


def _is_hidden(state: PartitionState) -> bool:
    """Return whether there are unsealed events of which the reading shows no beginning."""
    view = state.view
    return bool(view.length) and (view.last.n if view.last else view.n) > view.sealed


def count_ripe_events(state: PartitionState) -> int:
    """Return how many unsealed events are old enough to be sealed."""
    view = state.view
    if view.unsealed is None or view.last is None:
        return 0
    young = state.numbers[0] if state.numbers else None
    return max(0, (view.last.n + 1 if young is None else young) - view.unsealed.n)


def _is_trimmable(state: PartitionState, settings: Settings) -> bool:
    view = state.view
    if view.first is None or view.first.n > view.sealed or view.length <= 1:
        return False
    slack = min(_TRIM_SLACK_SECONDS, settings.hot_window / 10)
    age = (state.now_ms - entry_ms(view.first.entry)) / 1000
    return age >= settings.hot_window + slack


def next_page_size(taken: Sequence[RawEntry], size: int, settings: Settings) -> int:
    """Return how many entries to read next for a segment that is being gathered; 0: it is full."""
    events = settings.segment_events - len(taken)
    if not taken:
        return max(1, min(PAGE, events))
    average = max(1, size // len(taken))
    if size >= FULL_SEGMENT_BYTES or events <= 0:
        return 0
    return max(1, min(PAGE, events, (FULL_SEGMENT_BYTES - size) // average))


def number_entries(entries: Iterable[tuple[str, Sequence[bytes]]], after: int) -> list[RawEntry]:
    """Return a page's entries with their numbers; foreign entries are dropped."""
    numbered = []
    for entry, fields in entries:
        n = number_of(fields)
        if n is None:
            continue
        if n <= after:
            raise NumbersGivenTwice(entry, n, after)
        numbered.append(RawEntry(entry, n, fields))
        after = n
    return numbered


def find_gaps(partition: int, after: int, taken: Iterable[RawEntry]) -> list[Gap]:
    """Return the numbers that neither the archive has nor the log had when it was sealed."""
    gaps = []
    for entry in taken:
        if entry.n > after + 1:
            gaps.append(Gap(partition, after + 1, entry.n - 1, entry.n - 1 - after))
        after = entry.n
    return gaps
