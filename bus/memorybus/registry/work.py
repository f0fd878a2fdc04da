"""Counts the workers' work by provider. The sums are in Redis, so they outlive every worker."""

import threading
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from operator import sub
from typing import Final, Literal

import msgspec
from redis import Redis

from memorybus.log.entry import LoggedEvent, entry_ms
from memorybus.redis.hashes import add_counts
from memorybus.redis.keys import Keys

Mishap = Literal["retried", "parked", "fenced", "lost"]
APPLY_BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)
"""Seconds that a call, or a chunk of them, may have taken."""

LATENCY_BOUNDS: Final = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 300.0, 3_600.0, 86_400.0)
"""Seconds from an event's entry into the log until it was applied or parked."""

_LATENCY_BOUNDS_MS = tuple(round(bound * 1000) for bound in LATENCY_BOUNDS)
_KEPT_MS = 7 * 86_400_000
_MAX_SAMPLES = 10_000
"""The most latencies of a provider that are kept until they are summed up (G10)."""


def _bounds_as_text(bounds: Sequence[float]) -> tuple[str, ...]:
    return (*(f"{bound:g}" for bound in bounds), "+Inf")


_APPLY_FIELDS = tuple(f"apply:{bound}" for bound in _bounds_as_text(APPLY_BOUNDS))
_LATENCY_FIELDS = tuple(f"latency:{bound}" for bound in _bounds_as_text(LATENCY_BOUNDS))


class Histogram(msgspec.Struct, frozen=True):
    """A histogram of durations."""

    # how many durations each part has, by its upper bound in seconds (as text), smallest first; the
    # last bound is "+Inf"
    counts: dict[str, int] = {}
    sum: float = 0.0  # the sum of all durations, in seconds


class WorkDone(msgspec.Struct, frozen=True):
    """What workers did for a provider; the counts start again after a week without work."""

    # events handed over that may have been applied before: their log, or their lane's owner, was
    # lost
    redelivered: int = 0
    retried: int = 0  # tries that failed and are made again
    parked: int = 0  # events that were refused for good
    fenced: int = 0  # writes that were refused because the lane had another owner (G5)
    lost: int = 0  # leases that were lost while at work
    apply: Histogram = Histogram()  # how long calls took; those of a chunk together
    # From an event's entry into the log until it was applied or parked. The event's own time is not
    # used, since it may be that of a recorded conversation.
    latency: Histogram = Histogram()


class _Samples:
    """What was measured of a provider's work since it was last summed up."""

    def __init__(self) -> None:
        self.durations: list[float] = []
        self.ages: list[int] = []

    def sums(self) -> dict[str, int]:
        apply_counts = _count_parts(self.durations, APPLY_BOUNDS, _APPLY_FIELDS)
        latency_counts = _count_parts(self.ages, _LATENCY_BOUNDS_MS, _LATENCY_FIELDS)
        apply_us, latency_ms = round(sum(self.durations) * 1e6), sum(self.ages)
        return {"apply_us": apply_us, "latency_ms": latency_ms, **apply_counts, **latency_counts}


class WorkCounter:
    """Counts in this process until `report` adds the counts to Redis. Any thread may count."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._samples: defaultdict[str, _Samples] = defaultdict(_Samples)
        self._settled: Counter[str] = Counter()
        self._lock = threading.Lock()

    def totals(self) -> dict[str, int]:
        with self._lock:
            return dict(self._settled)

    def count(self, provider: str, what: Mishap) -> None:
        with self._lock:
            self._sums[provider][what] += 1

    def settled(
        self,
        provider: str,
        events: Sequence[LoggedEvent],
        took: float,
        now_ms: int,
        doubt: int = -1,
    ) -> None:
        ages = [now_ms - entry_ms(event.position.entry) for event in events]
        if min(ages) < 0:  # the clock of Redis is ahead of ours
            ages = [max(0, age) for age in ages]
        redelivered = sum([e.resent or e.position.n <= doubt for e in events])
        with self._lock:
            self._settled[provider] += len(events)
            if redelivered:
                self._sums[provider]["redelivered"] += redelivered
            samples = self._samples[provider]
            samples.durations.append(took)
            samples.ages += ages
            if len(samples.ages) >= _MAX_SAMPLES:
                self._sum_up(provider)

    def report(self, redis: Redis, keys: Keys) -> None:
        with self._lock:
            for provider in list(self._samples):
                self._sum_up(provider)
            taken, self._sums = self._sums, defaultdict(Counter)
        if not taken:
            return
        try:
            add_counts(redis, _amounts(taken, keys), _KEPT_MS)
        except BaseException:
            with self._lock:
                for provider, sums in taken.items():
                    self._sums[provider].update(sums)
            raise

    def _sum_up(self, provider: str) -> None:
        """Add a provider's samples to its sums; the caller has the lock."""
        self._sums[provider].update(self._samples.pop(provider).sums())


def _amounts(sums: Mapping[str, Mapping[str, int]], keys: Keys) -> dict[tuple[str, str], int]:
    """Return counts by the key of a provider's hash and the field."""
    return {
        (keys.work(provider), field): amount
        for provider, counts in sums.items()
        for field, amount in counts.items()
    }


def _count_parts(
    values: Sequence[float], bounds: Sequence[float], fields: Sequence[str]
) -> dict[str, int]:
    """Return how many values each part of a histogram has, without empty parts."""
    ascending = sorted(values)
    ends = [*(bisect_right(ascending, bound) for bound in bounds), len(ascending)]
    counts = map(sub, ends, (0, *ends))
    return {field: count for field, count in zip(fields, counts, strict=True) if count}


def read_work(redis: Redis, keys: Keys, providers: Sequence[str]) -> dict[str, WorkDone]:
    with redis.pipeline(transaction=False) as pipe:
        for name in providers:
            pipe.hgetall(keys.work(name))
        replies = pipe.execute(raise_on_error=False)
    return {name: _decode_work(hash_) for name, hash_ in zip(providers, replies, strict=True)}


def _decode_work(found: object) -> WorkDone:
    """Return what a hash says; nothing of one that somebody else wrote."""
    raw = found if isinstance(found, dict) else {}
    sums = {name.decode("ascii", "replace"): int(n) for name, n in raw.items() if n.isdigit()}
    plain = ("redelivered", "retried", "parked", "fenced", "lost")
    return WorkDone(
        **{name: sums.get(name, 0) for name in plain},
        apply=_histogram("apply", APPLY_BOUNDS, sums, sums.get("apply_us", 0) / 1e6),
        latency=_histogram("latency", LATENCY_BOUNDS, sums, sums.get("latency_ms", 0) / 1e3),
    )


def _histogram(
    name: str, bounds: Sequence[float], sums: Mapping[str, int], total: float
) -> Histogram:
    texts = _bounds_as_text(bounds)
    return Histogram({text: sums.get(f"{name}:{text}", 0) for text in texts}, total)
