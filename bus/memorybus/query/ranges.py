"""What an instance takes of the history: a query, and ranges of each partition's numbers; pure."""

from collections.abc import Mapping

import msgspec

from memorybus.query.query import EVERYTHING, Query


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Dense numbers of a partition, both ends included; without `last` it has no end."""

    first: int = 1
    last: int | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which events an instance takes. Others count as done without a call.

    Attributes:
        query: which events.
        spans: by partition, in order and without overlap; a partition that is not named is taken
            whole. A replay ends at the last span's `last`. A state of an earlier time that lives on
            has two spans: up to that time, and from the rebuild on.
        rate: events per second at most, over all its lanes and workers; 0.0 for no limit.
    """

    query: Query = EVERYTHING
    spans: Mapping[int, tuple[Span, ...]] = {}
    rate: float = 0.0

    def takes(self, partition: int, n: int) -> bool:
        """Say whether a number lies in one of the spans."""
        spans = self.spans.get(partition)
        return spans is None or any(
            span.first <= n and (span.last is None or n <= span.last) for span in spans
        )

    def next(self, partition: int, n: int) -> int | None:
        """Return the first number from `n` on that is taken of a partition; None if none is."""
        spans = self.spans.get(partition)
        if spans is None:
            return n
        found = (max(n, s.first) for s in spans if s.last is None or max(n, s.first) <= s.last)
        return next(found, None)

    def end(self, partition: int) -> int | None:
        """Return the last number that is taken of a partition; None if it has no end."""
        spans = self.spans.get(partition)
        if spans is None:
            return None
        return spans[-1].last if spans else 0

    def ends(self, partitions: int) -> dict[int, int]:
        """Return the last number that is taken of each partition; 0 for one without an end."""
        return {partition: self.end(partition) or 0 for partition in range(partitions)}

    def ended(self, partition: int, n: int) -> bool:
        """Say whether a lane that is at a number has all that is taken of its partition."""
        end = self.end(partition)
        return end is not None and n >= end


WHOLE = Plan()
