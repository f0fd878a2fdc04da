"""Which small segments are merged; pure.

Segments are sealed by age too, so a quiet partition has many small ones. Neighbours are merged into
one that is at least `FAN` times as large a class, so that no event is rewritten more often than
there are classes.
"""

from collections.abc import Sequence

import msgspec

from memorybus_workers.archiving.due import SEGMENT_BYTES

FAN = 4
"""A class holds segments of up to so many times as many events as the one below."""


class Size(msgspec.Struct, frozen=True):
    """A segment's rows, and bytes of their envelopes."""

    events: int
    bytes: int


def enough(segment_events: int) -> int:
    """Return from how many events on a segment is large enough to be left alone."""
    return max(2, segment_events // 2)


def is_small(size: Size, segment_events: int) -> bool:
    """Say whether a segment may be merged with its neighbours."""
    return size.events < enough(segment_events) and size.bytes < SEGMENT_BYTES // 2


def class_of(events: int) -> int:
    """Return the class of a size: 0 below `FAN` events, 1 below its square, and so on."""
    found = 0
    while events >= FAN ** (found + 1):
        found += 1
    return found


def choose(sizes: Sequence[Size], segment_events: int) -> range | None:
    """Return the neighbours to merge next, None if there is nothing to merge.

    Args:
        sizes: the segments, in order.
        segment_events: how many events a segment is sealed with.
    """
    top = class_of(enough(segment_events))
    for level in range(top + 1):
        found = _run(sizes, level, segment_events)
        if found is not None:
            return found
    return None


def _run(sizes: Sequence[Size], level: int, segment_events: int) -> range | None:
    """Return the first neighbours of at most a class that together are of a higher one."""
    goal = min(FAN ** (level + 1), enough(segment_events))
    start, events, held = 0, 0, 0
    for index, size in enumerate(sizes):
        if not is_small(size, segment_events) or class_of(size.events) > level:
            start, events, held = index + 1, 0, 0
            continue
        events, held = events + size.events, held + size.bytes
        if events >= goal or held >= SEGMENT_BYTES // 2:
            return range(start, index + 1)
    return None
