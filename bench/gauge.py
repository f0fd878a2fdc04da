"""Figures: how they are taken, what they are bounded by, and the ratios between them."""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

Figures: TypeAlias = dict[str, float]
"""Results by key; the unit is part of the key, ratios are named ``…_over_…``."""

US = 1_000
"""Nanoseconds in a microsecond."""


class LeftOut(Exception):
    """A part cannot be measured here; the message says why and what would help."""


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
    "prefetch_p50_over_get": Bound(1.2),
    "prompt_record_us": Bound(100.0),
    "fresh_p50_ms": Bound(30.0),
    "fresh_p99_ms": Bound(150.0),
    "this_prompt_over_warm": Bound(0.97, least=True),
    "redis_bytes_over_encoded": Bound(1.15),
    "slow_provider_events_per_s": Bound(3_000.0, least=True),
    "scale_1_to_4_workers": Bound(3.8, least=True),
    "scale_cpu_1_to_2": Bound(1.7, least=True),
    "backlog_1m_over_1k": Bound(0.85, least=True),
    "recovery_after_kill_s": Bound(12.0),
    "recovery_after_kill_worst_s": Bound(12.0),
    "recovery_after_kill_short_lease_worst_s": Bound(4.0),
    "drain_after_kill_over_calm": Bound(2.0),
    "replay_archive_over_floor": Bound(0.6, least=True),
    "replay_log_over_floor": Bound(0.5, least=True),
    "replay_holographic_over_live": Bound(0.8, least=True),
    "archive_over_raw": Bound(0.4),
    "one_session_over_full_scan": Bound(0.02),
    "replay_rss_peak_mb": Bound(300.0),
    "rebuild_filling_p99_ratio": Bound(2.0),
    "rebuild_paused_ms": Bound(2_000.0),
    "holographic_recall_p50_ms": Bound(5.0),
    "holographic_recall_p99_ms": Bound(20.0),
    "holographic_recall_50k_p50_ms": Bound(10.0),
    "postgres_over_floor": Bound(0.6, least=True),
    "postgres_recall_p50_ms": Bound(10.0),
    "postgres_1_to_4_workers": Bound(3.5, least=True),
    "idle_cpu_percent": Bound(1.0),
    "idle_rss_mb": Bound(105.0),
    "metrics_scrape_ms": Bound(50.0),
    "metrics_scrape_redis_ms": Bound(10.0),
    "drain_with_metrics_over_without": Bound(0.97, least=True),
    "drain_with_traces_over_without": Bound(0.95, least=True),
    "drain_with_traces_off_over_without": Bound(0.98, least=True),
    "page_overview_ms": Bound(200.0),
    "page_view_ms": Bound(300.0),
    "page_provider_ms": Bound(300.0),
    "page_history_ms": Bound(300.0),
    "gateway_prefetch_p50_ms": Bound(3.0),
    "hook_ms": Bound(150.0),
    "gateway_publish_per_s": Bound(2_000.0, least=True),
    "insights_1m_ms": Bound(2_000.0),
    "insights_1m_mb": Bound(500.0),
    "drain_noop_over_fastest_batch_peer": Bound(2.0, least=True),
    "drain_noop_over_fastest_single_peer": Bound(15.0, least=True),
}
"""The bounds the project sets itself; every other figure is for information."""


class Size(msgspec.Struct, frozen=True):
    """How much is measured.

    Attributes:
        runs: repetitions; the median of their figures counts.
        calls: timed calls of one kind in one run.
        paced: timed calls of one kind in one paced run.
        drained: events a drain works off.
        past: events of the long history: replayed with an eye on memory, and searched.
        singles: events published one at a time into an idle system.
        stored: events whose memory in Redis is counted.
        long_runs: repetitions of what takes long.
        slow: events that a slow provider works off.
        window: seconds for which the pace of several workers is watched.
        bursts: backlogs of 1,000 events.
        kills: workers killed at the default lease; at a short one, twice as many.
        peer_runs: repetitions of the peers.
        peer_patience: seconds in which a peer may recover from a kill; 0 leaves that out.
        prompted: turns in the store while prompts ask.
        prompts: prompts that are timed.
        asked: questions on recorded conversations.
        quick: the short form: only the fastest peers run, and one floor is left out.
    """

    runs: int
    calls: int
    paced: int
    drained: int
    past: int
    singles: int
    stored: int
    long_runs: int
    slow: int
    window: float
    bursts: int
    kills: int
    peer_runs: int
    peer_patience: float
    prompted: int
    prompts: int
    asked: int
    quick: bool


QUICK = Size(
    runs=3,
    calls=2_000,
    paced=700,
    drained=40_000,
    past=100_000,
    singles=150,
    stored=10_000,
    long_runs=1,
    slow=15_000,
    window=2.0,
    bursts=15,
    kills=1,
    peer_runs=1,
    peer_patience=0.0,
    prompted=10_000,
    prompts=500,
    asked=200,
    quick=True,
)
FULL = Size(
    runs=7,
    calls=5_000,
    paced=2_000,
    drained=100_000,
    past=1_000_000,
    singles=600,
    stored=50_000,
    long_runs=3,
    slow=40_000,
    window=4.0,
    bursts=40,
    kills=5,
    peer_runs=3,
    peer_patience=120.0,
    prompted=100_000,
    prompts=3_000,
    asked=1_000,
    quick=False,
)


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


def in_turns(sides: Mapping[str, Callable[[], float]], rounds: int) -> Figures:
    """Measure the rates of all sides in each round, forth and back: what drifts hits all alike.

    Returns:
        For each side the mean of the faster half of its runs: whatever else the machine does only
        slows, and it may do so for minutes.
    """
    names = list(sides)
    runs: dict[str, list[float]] = {name: [] for name in names}
    for name in (names + names[::-1]) * rounds:
        runs[name].append(sides[name]())
    return {name: statistics.mean(sorted(found)[-rounds:]) for name, found in runs.items()}
