"""The events that an instance takes: a query, and ranges of each partition's numbers; pure."""

from collections.abc import Mapping

import msgspec

from memorybus.query.query import EVERYTHING, Query


class NumberRange(msgspec.Struct, frozen=True, array_like=True):
    """A range of a partition's dense numbers, both ends included; None as `last` means no end."""

    first: int = 1
    last: int | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which events an instance takes. Other events count as done without a call."""

    query: Query = EVERYTHING  # the events
    # Ranges by partition, in order and without overlap; a partition without an entry is taken
    # whole. A replay ends at the last span's `last`. An instance that shows the state of an earlier
    # time and then follows the log has two spans: up to that time, and from the rebuild on.
    spans: Mapping[int, tuple[NumberRange, ...]] = {}
    # how many events per second all its lanes and workers may take; 0.0 for no limit
    rate: float = 0.0

    def takes(self, partition: int, n: int) -> bool:
        spans = self.spans.get(partition)
        return spans is None or any(
            span.first <= n and (span.last is None or n <= span.last) for span in spans
        )

    def next(self, partition: int, n: int) -> int | None:
        spans = self.spans.get(partition)
        if spans is None:
            return n
        starts = (max(n, s.first) for s in spans if s.last is None or max(n, s.first) <= s.last)
        return next(starts, None)

    def end(self, partition: int) -> int | None:
        spans = self.spans.get(partition)
        if spans is None:
            return None
        return spans[-1].last if spans else 0

    def ends(self, partitions: int) -> dict[int, int]:
        return {partition: self.end(partition) or 0 for partition in range(partitions)}

    def ended(self, partition: int, n: int) -> bool:
        """Whether a lane whose checkpoint has number `n` has passed its partition's spans."""
        end = self.end(partition)
        return end is not None and n >= end


WHOLE = Plan()
