"""How fast one worker process works off a full log, against the hand-written consumer.

The log is filled through the bus. Then, in turn and several times: the real worker process with
a provider that starts from nothing, and the floors (`floors`), each a process of its own. Start-up
is left out on both sides: the worker's clock runs from the moment its provider is open (written
down by the provider) to the last commit (written down by Redis in the lanes), so that taking 16
leases counts against it; the floor's from before its first read to after its last XACK.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard
from floors.consumer import ZSTD_FIRST_BYTE
from floors.runs import floor_per_s
from gauge import Figures, Size, medians
from memorybus.agent.client import MemoryBus
from stage import NOTHING, Agent, Stage
from texts import turns

from providers import OPENED

NOOP = "bench.providers:NoopProvider"
ROW = "bench.providers:RowProvider"


def measure(size: Size) -> Figures:
    """Return drain figures: events per second and ratios."""
    with Stage() as stage:
        filled = fill(stage, size.drained)
        contest = _Contest(stage)
        runs = [contest.run(number) for number in range(size.runs)]
        return medians(runs) | filled


def fill(stage: Stage, count: int) -> Figures:
    """Publish turns into the log; return how fast that went, from first publish to last append."""
    fresh = list(turns(count))
    with MemoryBus.connect(stage.settings) as bus:
        agent = Agent(bus)
        agent.flush()
        began = time.perf_counter()
        for turn in fresh:
            agent.publish(turn)
        agent.flush()
        return {"publish_to_log_per_s": count / (time.perf_counter() - began)}


class _Contest:
    """One worker and its floors on the same log."""

    def __init__(self, stage: Stage) -> None:
        """Copy the log into plain streams: the same events, not compressed."""
        self._stage = stage
        partitions = range(stage.settings.partitions)
        self._stored = [stage.keys.log(partition) for partition in partitions]
        self._plain = [f"bench:plain:{partition}" for partition in partitions]
        self._events = sum(stage.heads().values())
        self._copy_plain()

    def _copy_plain(self) -> None:
        unpack = zstandard.ZstdDecompressor().decompress
        redis: Any = self._stage.redis
        for stored, plain in zip(self._stored, self._plain, strict=True):
            after = "-"
            while entries := redis.xrange(stored, after, "+", 500):
                with redis.pipeline(transaction=False) as pipe:
                    for _, fields in entries:
                        body = fields[b"e"]
                        raw = unpack(body) if body[0] == ZSTD_FIRST_BYTE else body
                        pipe.xadd(plain, {"n": fields[b"n"], "e": raw})
                    pipe.execute()
                after = f"({entries[-1][0].decode()}"

    def run(self, number: int) -> Figures:
        """Measure each once."""
        noop = self._worker(f"noop{number}", NOOP)
        floor = self._floor(f"noop{number}", self._stored)
        plain = self._floor(f"noop{number}", self._plain)
        row = self._worker(f"row{number}", ROW)
        home = self._stage.data_dir / f"floor{number}.db"
        row_floor = self._floor(f"row{number}", self._stored, home)
        return {
            "drain_noop_over_floor": noop / floor,
            "drain_noop_over_plain_floor": noop / plain,
            "drain_sqlite_over_floor": row / row_floor,
            "drain_noop_per_s": noop,
            "drain_floor_per_s": floor,
            "drain_plain_floor_per_s": plain,
            "drain_sqlite_per_s": row,
            "drain_sqlite_floor_per_s": row_floor,
        }

    def _worker(self, name: str, kind: str) -> float:
        return self._events / drain_seconds(self._stage, name, kind)

    def _floor(self, name: str, streams: list[str], database: Path | None = None) -> float:
        options = ("--database", str(database)) if database else ()
        return floor_per_s(self._stage, "consumer", name, *options, streams=streams)


def drain_seconds(
    stage: Stage,
    name: str,
    kind: str,
    options: Sequence[str] = (),
    added: Mapping[str, str] = NOTHING,
) -> float:
    """Return how long a fresh provider instance took for the whole log; see `Stage.workers`."""
    settings = stage.with_providers({name: kind})
    with stage.worker(settings, options=options, added=added):
        ended_ms = stage.await_applied(name)
    opened_ms = int((settings.provider_home(name) / OPENED).read_text())
    return (ended_ms - opened_ms) / 1_000
