"""Figures: how they are taken, what they are bounded by, and the ratios between them."""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

Figures: TypeAlias = dict[str, float]
"""Results by key; the unit is part of the key, ratios are named ``…_over_…``."""

US = 1_000
"""Nanoseconds in a microsecond."""


class Bound(msgspec.Struct, frozen=True):
    """What a figure must keep: at most, or at least, a limit."""

    limit: float
    least: bool = False

    def kept(self, value: float) -> bool:
        """Say whether a value keeps the bound."""
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        """Return it as the table shows it."""
        return f"{'≥' if self.least else '≤'} {self.limit:g}"


BOUNDS: dict[str, Bound] = {
    "publish_p50_over_xadd": Bound(0.4),
    "publish_p99_over_xadd_p99": Bound(2.0),
    "publish_down_p50_over_xadd": Bound(0.4),
    "publish_down_p99_over_xadd_p99": Bound(2.0),
    "drain_noop_over_floor": Bound(0.8, least=True),
    "drain_sqlite_over_floor": Bound(0.6, least=True),
    "applied_p50_ms": Bound(5.0),
    "prefetch_p50_over_get": Bound(1.5),
    "redis_bytes_over_encoded": Bound(1.15),
}
"""The bounds the project sets itself; every other figure is for information."""


class Size(msgspec.Struct, frozen=True):
    """How much is measured.

    Attributes:
        runs: repetitions; the median of their figures counts.
        calls: timed calls of one kind in one run.
        paced: timed calls of one kind in one paced run.
        drained: events a drain works off.
        singles: events published one at a time into an idle system.
        stored: events whose memory in Redis is counted.
    """

    runs: int
    calls: int
    paced: int
    drained: int
    singles: int
    stored: int


QUICK = Size(runs=3, calls=2_000, paced=700, drained=40_000, singles=150, stored=10_000)
FULL = Size(runs=7, calls=5_000, paced=2_000, drained=100_000, singles=600, stored=50_000)


def timed(call: Callable[[Any], object], inputs: Iterable[Any], pause: float = 0.0) -> list[int]:
    """Call once per input and return each call's nanoseconds; pause between calls, untimed."""
    spent = []
    for one in inputs:
        began = time.perf_counter_ns()
        call(one)
        spent.append(time.perf_counter_ns() - began)
        if pause:
            time.sleep(pause)
    return spent


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def p50(values: Sequence[float]) -> float:
    """Return the median."""
    return percentile(values, 0.5)


def p99(values: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return percentile(values, 0.99)


def medians(runs: Sequence[Figures]) -> Figures:
    """Return the median of each figure over several runs."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}
