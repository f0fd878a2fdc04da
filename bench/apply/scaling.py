"""A provider that takes 20 ms a call, worked off by one worker process and by four.

Each worker makes 16 calls at once, the default, so it can apply 800 events a second at most and
four of them 3,200, which leaves the two cores this suite was written on far from busy: what is
measured is that work is shared out, not what a core can do. 256 keys, 16 in each partition, so
that every lane has enough of them. The pace is watched once each worker owns its share of lanes.
"""

import time

import psutil
from filling import Filler, spread
from gauge import Figures, Size, medians
from pace import Applied, Sample, await_spread, owned, rate, watch
from stage import Stage

from apply.slow import KIND
from providers import SLOW_SECONDS

_KEYS = 256
_CONCURRENCY = 16
_FEW_WORKERS, _MANY_WORKERS = 1, 4
_SETTLING_SECONDS = 15.0
"""Seconds of work laid in for the time in which the lanes are shared out."""


def measure(size: Size) -> Figures:
    """Return how many times more events four workers apply."""
    most = _MANY_WORKERS * _CONCURRENCY / SLOW_SECONDS
    with Stage(concurrency=_CONCURRENCY) as stage:
        filler = Filler(stage, spread(stage.settings.partitions, _KEYS), scale=0.1)
        filler.fill(round(most * (size.window + _SETTLING_SECONDS)))
        runs = [_run(stage, number, size.window) for number in range(size.long_runs)]
    return medians(runs) | {"scale_calls_at_once_per_worker": _CONCURRENCY}


def _run(stage: Stage, number: int, window: float) -> Figures:
    few, _ = _pace(stage, f"few{number}", _FEW_WORKERS, window)
    many, cores = _pace(stage, f"many{number}", _MANY_WORKERS, window)
    return {
        "scale_1_to_4_workers": many / few,
        "scale_1_worker_per_s": few,
        "scale_4_workers_per_s": many,
        "scale_4_workers_cores_busy": cores,
    }


def _pace(stage: Stage, name: str, workers: int, window: float) -> tuple[float, float]:
    """Return events per second, and how many cores the workers kept busy, in a steady while."""
    settings = stage.with_providers({name: KIND})
    applied = Applied(settings, name)
    with stage.workers(settings, workers) as running:
        await_spread(stage, name, workers)
        processes = [psutil.Process(one.pid) for one in running]
        spent = _cpu(processes)
        began = time.monotonic()
        samples = watch(lambda: Sample(time.monotonic(), applied.total()), seconds=window)
        cores = (_cpu(processes) - spent) / (time.monotonic() - began)
        _check(stage, name, workers, samples[-1])
    return rate(samples), cores


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _check(stage: Stage, name: str, workers: int, last: Sample) -> None:
    """Refuse a pace taken while lanes moved, or after some had run dry."""
    shares = owned(stage, name)
    if len(shares) != workers or max(shares) != min(shares):
        raise RuntimeError(f"lanes moved while the pace was taken: {shares}")
    checkpoints = stage.applied(name)
    dry = [p for p, head in stage.heads().items() if checkpoints[p][0] >= head]
    if dry:
        raise RuntimeError(f"partitions {dry} ran dry at {last.applied} events")
