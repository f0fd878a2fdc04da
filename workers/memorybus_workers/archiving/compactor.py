"""Rewrites segments: merges small ones, and removes the content of rows that has expired.

Segments are sealed by age too, so a quiet partition has many small ones. Neighbours are merged into
one that is at least `CLASS_SIZE_FACTOR` times as large a class, so that no event is rewritten more
often than there are classes.
"""

from collections.abc import Collection, Sequence
from itertools import groupby

import msgspec
from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import Segment
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveDamaged, SegmentDamaged
from memorybus.log.entry import entry_ms

from memorybus_workers.archiving.due import FULL_SEGMENT_BYTES
from memorybus_workers.archiving.retention import (
    Policy,
    ages_of,
    build_omission_filter,
    judgement_of,
)

CLASS_SIZE_FACTOR = 4
"""A size class holds segments with up to this many times the events of the class below."""


class Compactor:
    """Rewrites segments of partitions that the caller owns. Belongs to one thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def work(self, archive: Archive, partition: int, policy: Policy, now_ms: int) -> int:
        """Merge small segments and drop expired content; return how many were rewritten."""
        rewritten = 0
        fresh: set[str] = set()
        damage: dict[str, str] = {}
        while chosen := self._choose_next(
            _readable_runs(archive, partition, damage), policy, fresh, now_ms
        ):
            first, last = chosen[0].first.entry, chosen[-1].last.entry
            omit = build_omission_filter(policy, entry_ms(first), entry_ms(last), now_ms)
            try:
                written = archive.replace(partition, chosen, omit, judgement_of(policy, now_ms))
            except SegmentDamaged as error:
                damage[error.sha256] = str(error)
                continue
            fresh.add(written.sha256)
            rewritten += len(chosen)
        archive.clean(partition, damage)
        if damage:
            raise ArchiveDamaged("; ".join(damage.values()))
        return rewritten

    def _choose_next(
        self, runs: Sequence[Sequence[Segment]], policy: Policy, fresh: set[str], now_ms: int
    ) -> Sequence[Segment]:
        for segments in runs:
            sizes = [SegmentSize(segment.count, segment.raw) for segment in segments]
            chosen = choose_run(sizes, self._settings.segment_events)
            if chosen is not None:
                return segments[chosen.start : chosen.stop]
        old = (segment for segments in runs for segment in segments if segment.sha256 not in fresh)
        concerned = (segment for segment in old if policy.concerns(ages_of(segment), now_ms))
        return [one] if (one := next(concerned, None)) else []


def _readable_runs(
    archive: Archive, partition: int, damaged: Collection[str]
) -> Sequence[Sequence[Segment]]:
    """Return each run of neighbouring segments, without those that cannot be read."""
    runs = groupby(archive.segments(partition), lambda segment: segment.sha256 in damaged)
    return [list(run) for is_damaged, run in runs if not is_damaged]


class SegmentSize(msgspec.Struct, frozen=True):
    """A segment's rows, and bytes of their envelopes."""

    events: int
    bytes: int


def enough_events(segment_events: int) -> int:
    return max(2, segment_events // 2)


def is_small(size: SegmentSize, segment_events: int) -> bool:
    return size.events < enough_events(segment_events) and size.bytes < FULL_SEGMENT_BYTES // 2


def size_class_of(events: int) -> int:
    """Return the class of a size: 0 below `CLASS_SIZE_FACTOR` events, 1 below its square, …"""
    found = 0
    while events >= CLASS_SIZE_FACTOR ** (found + 1):
        found += 1
    return found


def choose_run(sizes: Sequence[SegmentSize], segment_events: int) -> range | None:
    top = size_class_of(enough_events(segment_events))
    for level in range(top + 1):
        found = _first_run(sizes, level, segment_events)
        if found is not None:
            return found
    return None


def _first_run(sizes: Sequence[SegmentSize], level: int, segment_events: int) -> range | None:
    """Return the first neighbours of a class or below that together reach a higher class."""
    goal = min(CLASS_SIZE_FACTOR ** (level + 1), enough_events(segment_events))
    start, events, held = 0, 0, 0
    for index, size in enumerate(sizes):
        if not is_small(size, segment_events) or size_class_of(size.events) > level:
            start, events, held = index + 1, 0, 0
            continue
        events, held = events + size.events, held + size.bytes
        if events >= goal or held >= FULL_SEGMENT_BYTES // 2:
            return range(start, index + 1)
    return None
