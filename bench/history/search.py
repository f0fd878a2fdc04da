"""The long history: one session read out of it, and the memory of a worker that replays all of it.

Sessions of 250 events each, 64 of them at a time side by side, as agents come and go; all sealed.
**One session**: `History.scan` with a query that names it, against a scan of everything; what is
found is checked against what was written. **Memory**: a worker applies everything from the archive
to a provider that counts; its resident memory from sample to sample, the peak as Linux says it.
"""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from apply.backlog import KIND, rss_figures
from filling import Filler
from gauge import Figures, Size
from memorybus.history.history import History
from memorybus.query.query import EVERYTHING, Query
from memorybus.redis.connect import connect_redis
from pace import Applied, Sample, watch
from stage import WAIT_SECONDS, Stage, resident

from history.past import TEXTS, parts, seal

SESSION_EVENTS = 250
AT_ONCE = 64
_ASKED_SESSIONS = 9
_MILLION = 1_000_000
"""Of fewer, one session costs mostly what any question costs; the bound is for these."""

_MB = 1 << 20


def measure(size: Size) -> Figures:
    """Return what one session costs, and megabytes."""
    with Stage() as stage:
        names = _fill(stage, size.past)
        return _searched(stage, names, size.past) | _replayed(stage, size.past)


def _fill(stage: Stage, count: int) -> list[str]:
    """Write and seal; return the sessions' names."""
    a_round = SESSION_EVENTS * AT_ONCE
    names: list[str] = []
    filler = Filler(stage, ["none"], texts=TEXTS)
    for number, part in enumerate(parts(count, a_round)):
        fresh = [f"session-{number:04d}-{one:02d}" for one in range(AT_ONCE)]
        filler.turn_to(fresh)
        filler.fill(part)
        names += fresh if part == a_round else ()
        if number % 12 == 11:
            seal(stage)
    seal(stage)
    stage.settle()
    return names


def _searched(stage: Stage, names: Sequence[str], count: int) -> Figures:
    asked = names[:: max(1, len(names) // _ASKED_SESSIONS)][:_ASKED_SESSIONS]
    one = statistics.median(_seconds(stage, Query(sessions=(name,)), 250) for name in asked)
    everything = _seconds(stage, EVERYTHING, count)
    size = "" if count >= _MILLION else f"_of_{count}"
    return {
        f"one_session_over_full_scan{size}": one / everything,
        "one_session_ms": one * 1_000,
        "full_scan_per_s": count / everything,
    }


def _seconds(stage: Stage, query: Query, expected: int) -> float:
    redis = connect_redis(stage.settings)
    history = History.from_settings(redis, stage.settings)
    began = time.perf_counter()
    found = sum(1 for _ in history.scan(query))
    spent = time.perf_counter() - began
    redis.close()
    if found != expected:
        raise RuntimeError(f"found {found} events, not {expected}")
    return spent


def _replayed(stage: Stage, count: int) -> Figures:
    settings = stage.with_providers({"counted": KIND})
    applied = Applied(settings, "counted")
    with stage.workers(settings, 1) as (worker,):

        def look() -> Sample:
            return Sample(time.monotonic(), applied.total(), (), resident(worker.pid))

        samples = watch(look, count, 10 * WAIT_SECONDS)
        peak = _peak(worker.pid)
    return {"replay_rss_peak_mb": peak, "replay_rss_events": float(count)} | {
        f"replay_{name}": value for name, value in rss_figures(samples).items()
    }


def _peak(pid: int) -> float:
    """Return the most memory a process ever had, as Linux says it; in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / _MB
