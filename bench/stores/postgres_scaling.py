"""Facts in Postgres, 5 ms of network away: turns applied by one worker process and by four.

Every round trip to the server takes 5 ms longer (`latency`), as it does to another building.
Batches are small, 16 turns, so that the wait for the server is what takes the time: the two cores
this suite was written on would be busy with four workers' texts else, and what is measured is that
lanes of one memory are written side by side, not what a core can do. 256 keys, 16 in each
partition. The pace is watched once each worker owns its share of the lanes.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from filling import Filler, spread
from gauge import Figures, Size, medians
from pace import Sample, await_spread, owned, rate, watch
from stage import Stage, wait_for

from stores.postgres_store import server

CALL_SECONDS = 0.005
BATCH = 16
_KEYS = 256
_FEW_WORKERS, _MANY_WORKERS = 1, 4
_SETTLING_SECONDS = 15.0
_MAX_TURNS_PER_SECOND = 1_200.0
"""Turns a second that are laid in, more than four workers apply."""


def measure(size: Size) -> Figures:
    """Return how many times more turns four workers apply."""
    with server() as url, Stage(batch=BATCH) as stage, network(url, stage) as far:
        filler = Filler(stage, spread(stage.settings.partitions, _KEYS), scale=0.1)
        filler.fill(round(_MAX_TURNS_PER_SECOND * (size.window + _SETTLING_SECONDS)))
        with psycopg.connect(url, autocommit=True) as db:
            pace = Pace(stage, far, db, size.window)
            runs = [_run(pace, number) for number in range(size.long_runs)]
    return medians(runs)


@contextmanager
def network(url: str, stage: Stage) -> Iterator[str]:
    """Yield the connection string of the server behind a stretch of network."""
    near = Path(url.split(maxsplit=1)[0].removeprefix("host="))
    far = stage.data_dir / "far"
    far.mkdir()
    socket = far / ".s.PGSQL.5432"
    command = [sys.executable, str(Path(__file__).with_name("latency.py"))]
    words = [str(near / socket.name), str(socket), str(CALL_SECONDS)]
    running = subprocess.Popen([*command, *words])
    try:
        wait_for("the stretch of network", socket.exists)
        yield url.replace(str(near), str(far))
    finally:
        running.kill()
        running.wait()


def _run(pace: "Pace", number: int) -> Figures:
    few, many = pace.of(f"few{number}", _FEW_WORKERS), pace.of(f"many{number}", _MANY_WORKERS)
    return {
        "postgres_1_to_4_workers": many / few,
        "postgres_1_worker_per_s": few,
        "postgres_4_workers_per_s": many,
    }


class Pace:
    """Turns that workers apply in a second, counted where they are kept.

    Args:
        stage: the log, and the workers' Redis.
        url: where the workers find the server.
        db: a connection that is near to it.
        window: seconds for which the pace is watched.
    """

    def __init__(
        self, stage: Stage, url: str, db: psycopg.Connection[tuple[Any, ...]], window: float
    ) -> None:
        """Start nobody yet."""
        self._stage, self._url, self._db, self._window = stage, url, db, window

    def of(self, name: str, workers: int) -> float:
        """Return the pace of so many worker processes with a schema of their own."""
        stage = self._stage
        table = {"kind": "postgres", "url": self._url, "schema": name}
        settings = msgspec.structs.replace(
            stage.settings, providers=(name,), provider={name: table}
        )
        with stage.workers(settings, workers):
            await_spread(stage, name, workers)
            samples = watch(lambda: self._sample(name), seconds=self._window)
            shares = owned(stage, name)
            if len(shares) != workers or max(shares) != min(shares):
                raise RuntimeError(f"lanes moved while the pace was taken: {shares}")
            if samples[-1].applied >= sum(stage.heads().values()):
                raise RuntimeError(f"the log ran dry at {samples[-1].applied} turns")
        return rate(samples)

    def _sample(self, schema: str) -> Sample:
        """Count the turns that are committed: two facts each."""
        row = self._db.execute(f"select coalesce(sum(said), 0) from {schema}.sessions").fetchone()
        return Sample(time.monotonic(), int(row[0]) // 2 if row else 0)
