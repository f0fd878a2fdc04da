"""A backlog of a million events against one of a thousand; two processes against one on it.

**A thousand.** A worker that has nothing to do is stopped (SIGSTOP), 1,000 events of one key come
into the log, and it goes on. What 999 events more take is the difference between this and the same
with one event: waking up is left out on this side as starting is on the other. The thousand lie in
one partition, so that batches are as full as those of the million.

**A million.** A fresh provider instance in a fresh worker; the rate between a twentieth of the
work and the last one, from samples of its count, and the worker's resident memory beside it.

**Two processes** on the same log, against one: the rate while each owns half of the lanes. With a
provider that computes (0.05 ms a turn) the workers are what is scaled. With a no-op the Redis
server needs a core too, so on two cores both workers and the server share them; the hand-written
consumer (`floors`), as one process and as two on half of the streams each, says what that leaves.
"""

import os
import signal
import statistics
import time
from collections.abc import Sequence

from filling import Filler, spread
from floors.runs import floor_per_s
from gauge import Figures, Size, medians
from pace import Applied, Sample, owned, part, rate, watch
from stage import Stage, Worker, resident, wait_for
from tally import Tally

KIND = "bench.providers:TallyProvider"
COMPUTING = "bench.providers:ComputingProvider"
_MILLION = 1_000_000
_THOUSAND = 1_000
_KEYS = 256
_COMPUTED_EVENTS = 150_000
"""Events that the computing provider gets."""

_MB = 1 << 20


def measure(size: Size) -> Figures:
    """Return ratios of rates, and the worker's memory."""
    with Stage() as stage:
        filler = Filler(stage, spread(stage.settings.partitions, _KEYS))
        began = time.perf_counter()
        filler.fill(_MILLION)
        filled = time.perf_counter() - began
        stage.settle()
        runs = [_run(stage, number, size) for number in range(size.long_runs)]
    return medians(runs) | {"backlog_events": _MILLION, "backlog_fill_per_s": _MILLION / filled}


def _run(stage: Stage, number: int, size: Size) -> Figures:
    name = f"one{number}"
    settings = stage.with_providers({name: KIND})
    applied = Applied(settings, name)
    with stage.workers(settings, 1) as (worker,):
        alone = _watch(stage, name, applied, worker)
        stage.await_applied(name)
        small = _Bursts(stage, name, applied.tallies()[0], worker).per_s(size.bursts)
    many = _rate(alone)
    pair = _pair(stage, f"two{number}", KIND, _MILLION)
    return {
        "backlog_1m_over_1k": many / small,
        "backlog_last_tenth_over_first": _rate(alone, 0.85, 0.95) / _rate(alone, 0.05, 0.15),
        "backlog_1m_per_s": many,
        "backlog_1k_per_s": small,
        "scale_noop_1_to_2": pair / many,
        "scale_noop_2_processes_per_s": pair,
        **{f"backlog_{name}": value for name, value in rss_figures(alone).items()},
        **_computing(stage, number),
        **({} if size.quick else _floors(stage, number)),
    }


def _floors(stage: Stage, number: int) -> Figures:
    alone = floor_per_s(stage, "consumer", f"one{number}")
    pair = floor_per_s(stage, "consumer", f"two{number}", processes=2)
    return {"scale_noop_floor_1_to_2": pair / alone, "scale_noop_floor_1_process_per_s": alone}


def _computing(stage: Stage, number: int) -> Figures:
    """Return what a second process gains where the provider computes."""
    name = f"busy{number}"
    settings = stage.with_providers({name: COMPUTING})
    with stage.workers(settings, 1) as (worker,):
        samples = _watch(stage, name, Applied(settings, name), worker, _COMPUTED_EVENTS)
    alone = rate(part(samples, _COMPUTED_EVENTS, 0.05, 0.95))
    pair = _pair(stage, f"busy-two{number}", COMPUTING, _COMPUTED_EVENTS)
    return {"scale_cpu_1_to_2": pair / alone, "scale_cpu_1_process_per_s": alone}


def _watch(
    stage: Stage, name: str, applied: Applied, worker: Worker, events: int = _MILLION
) -> list[Sample]:
    def look() -> Sample:
        return Sample(time.monotonic(), applied.total(), owned(stage, name), resident(worker.pid))

    return watch(look, events)


def _rate(samples: Sequence[Sample], first: float = 0.05, last: float = 0.95) -> float:
    return rate(part(samples, samples[-1].applied, first, last))


def rss_figures(samples: Sequence[Sample]) -> Figures:
    """Return a worker's memory at begin and end of the steady part, and its slope."""
    steady = part(samples, samples[-1].applied, 0.05, 0.95)
    slope, _ = statistics.linear_regression([s.applied for s in steady], [s.rss for s in steady])
    return {
        "rss_begin_mb": steady[0].rss / _MB,
        "rss_end_mb": steady[-1].rss / _MB,
        "rss_slope_mb_per_million": slope * _MILLION / _MB,
    }


def _pair(stage: Stage, name: str, kind: str, events: int) -> float:
    """Return the rate of two workers while each owns half of the lanes, none of them dry."""
    settings = stage.with_providers({name: kind})
    applied = Applied(settings, name)
    half = (settings.partitions // 2,) * 2
    with stage.workers(settings, 2) as workers:
        samples = _watch(stage, name, applied, workers[0], events)
    shared = [s for s in part(samples, events, 0.0, 0.9) if s.owned == half]
    return rate(shared)


class _Bursts:
    """Backlogs that come while the worker stands still."""

    def __init__(self, stage: Stage, name: str, tally: Tally, worker: Worker) -> None:
        """Use one session of one partition."""
        self._stage = stage
        self._name = name
        self._tally = tally
        self._worker = worker
        self._filler = Filler(stage, spread(stage.settings.partitions, 1))

    def per_s(self, rounds: int) -> float:
        """Return the rate between the first and the last event of a thousand."""
        singles = [self._seconds(1) for _ in range(rounds)]
        thousands = [self._seconds(_THOUSAND) for _ in range(rounds)]
        more = statistics.median(thousands) - statistics.median(singles)
        return (_THOUSAND - 1) / more

    def _seconds(self, count: int) -> float:
        """Return how long after the worker goes on it has called the hook for the last event."""
        before = self._tally.seen().count
        os.kill(self._worker.pid, signal.SIGSTOP)
        try:
            self._filler.fill(count)
        finally:
            thawed_at = time.monotonic_ns()
            os.kill(self._worker.pid, signal.SIGCONT)
        wait_for(f"{count} events", lambda: self._tally.seen().count >= before + count)
        self._stage.await_applied(self._name)
        return (self._tally.seen().last - thawed_at) / 1e9
