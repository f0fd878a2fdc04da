"""What `Session.turn_completed` costs the agent, against one XADD of the same bytes.

An XADD is one round trip of redis-py's default client (hiredis) with the encoded envelope. Both
run in one process with the flusher working, in alternating blocks on the same server; before each
XADD block the flusher has sent everything, so that the yardstick is never slowed. "Down" is
a second bus whose Redis is not there: its flusher goes on trying to connect.
"""

from collections.abc import Sequence

import msgspec
from gauge import US, Figures, Size, medians, p50, p99, timed
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from stage import Agent, Stage, can_pin
from texts import turns

PACE_SECONDS = 0.002
"""Seconds between paced calls."""

_WARM_UP = 200
_ORDINALS_PER_RUN = 1_000_000
"""Between the ordinals of two runs, so that no turn is published twice."""


def measure(size: Size) -> Figures:
    """Return publish figures: tight loop and paced, Redis up and down; a fresh server per run."""
    runs = [_run(size) for _ in range(size.runs)]
    worst = max(run["publish_p50_over_xadd"] for run in runs)
    return medians(runs) | {"publish_p50_over_xadd_worst_run": worst}


def _run(size: Size) -> Figures:
    with Stage() as stage:
        gone = Settings(data_dir=stage.data_dir / "gone", url=f"unix://{stage.data_dir}/gone.sock")
        with MemoryBus.connect(stage.settings) as bus, MemoryBus.connect(gone) as lost:
            trial = _Trial(stage, Agent(bus), Agent(lost))
            tight = _ratios(trial.run(size.calls, 0.0), "")
            paced = _ratios(trial.run(size.paced, PACE_SECONDS), "paced_")
            return tight | paced | trial.by_core(size.calls, tight["publish_p50_us"])


class _Trial:
    """Publishes and XADDs fresh turns in alternating blocks."""

    def __init__(self, stage: Stage, agent: Agent, lost: Agent) -> None:
        self._stage = stage
        self._agent = agent
        self._lost = lost
        self._seed = 0
        self.run(_WARM_UP, 0.0)

    def run(self, calls: int, pause: float) -> dict[str, Sequence[int]]:
        """Time one block of each kind; nanoseconds by kind."""
        self._seed += 1
        fresh = [
            msgspec.structs.replace(turn, ordinal=turn.ordinal + self._seed * _ORDINALS_PER_RUN)
            for turn in turns(calls, self._seed)
        ]
        bodies = [self._agent.encoded(turn) for turn in fresh]
        up = timed(self._agent.publish, fresh, pause)
        self._agent.flush()
        xadd = timed(self._xadd, bodies, pause)
        down = timed(self._lost.publish, fresh, pause)
        return {"publish": up, "publish_down": down, "xadd": xadd}

    def by_core(self, calls: int, publish_us: float) -> Figures:
        """Time XADD with server and client held on one core, and on two; Linux only.

        A round trip to a server on the same core is twice as fast as one that wakes another core,
        and the scheduler decides which one a free run gets: these two say which one it was.
        """
        if not can_pin():
            return {}
        bodies = [self._agent.encoded(turn) for turn in turns(calls)]
        figures: Figures = {}
        for name, same_core in (("same_core", True), ("other_core", False)):
            with self._stage.pinned(same_core=same_core):
                figures[f"xadd_{name}_p50_us"] = p50(timed(self._xadd, bodies)) / US
        return figures | {
            f"publish_p50_over_{name.removesuffix('_p50_us')}": publish_us / spent
            for name, spent in figures.items()
        }

    def _xadd(self, body: bytes) -> None:
        self._stage.redis.xadd("bench:xadd", {"e": body})


def _ratios(run: dict[str, Sequence[int]], pacing: str) -> Figures:
    figures: Figures = {}
    for name in ("publish", "publish_down"):
        figures[f"{name}_{pacing}p50_over_xadd"] = p50(run[name]) / p50(run["xadd"])
        figures[f"{name}_{pacing}p99_over_xadd_p99"] = p99(run[name]) / p99(run["xadd"])
    for name, spent in run.items():
        figures[f"{name}_{pacing}p50_us"] = p50(spent) / US
        figures[f"{name}_{pacing}p99_us"] = p99(spent) / US
    return figures
