"""What agents notice while a provider is rebuilt: from publish to apply, calm and meanwhile.

One worker serves the shipped holographic provider, which stamps each turn as it applies it. Single
turns come 20 to 50 ms apart: first into an idle system, then from the start of `memorybus rebuild`
until it ends, pause, comparison and swap included. The same worker fills the copy. The turns
before the pause, in which nothing is applied, are also shown by themselves.
"""

import json
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable

import msgspec
from filling import Filler, spread
from gauge import Figures, Size, medians, p50, p99
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from stage import WAIT_SECONDS, Agent, Stage, environment, wait_for
from texts import Turn, turns

from history.past import KEYS, TEXTS
from providers import STAMPS

KIND = "bench.providers:StampedHolographic"
_FIRST_ORDINAL = 1_000_000_000
"""Those of the backlog are smaller."""

_NS_PER_MS = 1_000_000
_MIN_SINGLES = 50


def measure(size: Size) -> Figures:
    """Return latencies in milliseconds, and the ratio of their p99."""
    return medians([_run(size) for _ in range(size.long_runs)])


def _run(size: Size) -> Figures:
    with Stage() as stage:
        settings = stage.with_providers({"live": KIND})
        Filler(stage, spread(settings.partitions, KEYS), texts=TEXTS).fill(size.drained)
        with stage.worker(settings, jobs=1), MemoryBus.connect(settings) as bus:
            stage.await_applied("live")
            singles = _Singles(settings, Agent(bus))
            calm = singles.until(lambda: singles.count >= size.singles)
            began, child = time.perf_counter(), _rebuild(settings)
            busy = singles.until(lambda: child.poll() is not None)
            spent = time.perf_counter() - began
            paused_ms = _paused_ms(child, len(busy))
    # The first turn of the pause waits longest; what comes after the pause is left out as well.
    filling = busy[: busy.index(max(busy))] if paused_ms else busy
    return {
        "rebuild_live_p99_ratio": p99(busy) / p99(calm),
        "rebuild_filling_p99_ratio": p99(filling) / p99(calm),
        "rebuild_paused_ms": paused_ms,
        "rebuild_live_p50_ratio": p50(busy) / p50(calm),
        "rebuild_live_p99_ms": p99(busy),
        "rebuild_live_worst_ms": max(busy),
        "rebuild_calm_p99_ms": p99(calm),
        "rebuild_singles": float(len(busy)),
        "rebuild_events_per_s": size.drained / spent,
    }


def _rebuild(settings: Settings) -> "subprocess.Popen[str]":
    words = ("rebuild", "live", "--yes", "--reason", "a benchmark", "--json")
    return subprocess.Popen(
        [sys.executable, "-m", "memorybus", *words],
        env=to_environ(settings, environment()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _paused_ms(child: "subprocess.Popen[str]", singles: int) -> float:
    """Return for how long nothing was applied, at the end, as the command says."""
    said, complaint = child.communicate(timeout=WAIT_SECONDS)
    if child.returncode:
        raise RuntimeError(f"the rebuild failed: {(complaint or said)[-800:]}")
    if singles < _MIN_SINGLES:
        raise RuntimeError(f"only {singles} turns came while it ran: too few for a percentile")
    return float(json.loads(said)["paused_ms"])


class _Singles:
    """Publishes turns one at a time and finds out when each was applied."""

    def __init__(self, settings: Settings, agent: Agent) -> None:
        """Find the stamps."""
        self.count = 0
        self._settings = settings
        self._agent = agent
        self._rng = random.Random(1)
        self._turns = turns(1_000_000, seed=11)

    def until(self, over: Callable[[], bool]) -> list[float]:
        """Publish until something is so; return each turn's milliseconds until it was applied."""
        began: dict[int, int] = {}
        while not over():
            time.sleep(self._rng.uniform(0.02, 0.05))
            turn = self._next()
            began[turn.ordinal] = time.time_ns()
            self._agent.publish(turn)
        wait_for("the last turns", lambda: began.keys() <= self._stamps().keys())
        stamps = self._stamps()
        return [(stamps[number] - at) / _NS_PER_MS for number, at in began.items()]

    def _next(self) -> Turn:
        self.count += 1
        return msgspec.structs.replace(next(self._turns), ordinal=_FIRST_ORDINAL + self.count)

    def _stamps(self) -> dict[int, int]:
        """Return when each turn was first applied, by whichever copy serves agents then."""
        found: dict[int, int] = {}
        for path in sorted((self._settings.data_dir / "providers").glob(f"live*/{STAMPS}")):
            for ordinal, at in struct.iter_unpack(">QQ", path.read_bytes()):
                found[ordinal] = min(at, found.get(ordinal, at))
        return found
