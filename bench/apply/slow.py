"""A provider that takes 20 ms a call: how many events a second one worker process applies.

100 keys, spread evenly over the partitions, each key in order. One key takes at most 50 events a
second then, so 5,000 a second is what nobody can exceed. The yardstick is a hand-written consumer
with as many threads that keeps each key in order, too (`floor_keyed`).
"""

import time

import psutil
from filling import Filler, spread
from floors.runs import floor_per_s
from gauge import Figures, Size, medians
from pace import Applied, Sample, part, rate, watch
from stage import Stage

from providers import SLOW_SECONDS

KIND = "bench.providers:SlowProvider"
_KEYS = 100
_CONCURRENCY = 128


def measure(size: Size) -> Figures:
    """Return events per second, and over the floor."""
    with Stage(concurrency=_CONCURRENCY) as stage:
        Filler(stage, spread(stage.settings.partitions, _KEYS)).fill(size.slow)
        runs = [_run(stage, number, size.slow) for number in range(size.long_runs)]
    return medians(runs) | {
        "slow_provider_keys": _KEYS,
        "slow_provider_most_per_s": _KEYS / SLOW_SECONDS,
    }


def _run(stage: Stage, number: int, events: int) -> Figures:
    name = f"slow{number}"
    settings = stage.with_providers({name: KIND})
    applied = Applied(settings, name)
    with stage.workers(settings, 1) as (worker,):
        process = psutil.Process(worker.pid)
        samples = watch(lambda: Sample(time.monotonic(), applied.total()), events)
        stage.await_applied(name)
        spent = sum(process.cpu_times()[:2])
    whole = applied.tallies()[0].seen().per_s
    floor = floor_per_s(stage, "keyed", name, "--threads", str(_CONCURRENCY))
    return {
        "slow_provider_events_per_s": rate(part(samples, events, 0.1, 0.9)),
        "slow_provider_over_floor": whole / floor,
        "slow_provider_floor_per_s": floor,
        "slow_provider_cpu_us_per_event": spent / events * 1e6,
    }
