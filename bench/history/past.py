"""A log whose past is sealed: filled through `append.lua`, sealed by `memorybus archive run`.

What is read back afterwards comes from the archive, but for the last entry of each partition, which
is in both.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from filling import Filler, spread
from memorybus.config.settings import Settings, to_environ
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from stage import WAIT_SECONDS, Stage, environment

TEXTS = 997
"""Different texts: no divisor of the number of partitions, so that each partition meets all."""

KEYS = 256
_PER_SEAL = 200_000

AT_ONCE: dict[str, Any] = {"seal_after": 0.0, "segment_age": 0.0, "hot_window": 0.0}
"""Settings under which all but a partition's last entry is sealed and trimmed as soon as can be."""


@contextmanager
def sealed(count: int) -> Iterator[Stage]:
    """Yield a stage with so many events, sealed and trimmed."""
    with Stage() as stage:
        filler = Filler(stage, spread(stage.settings.partitions, KEYS), texts=TEXTS)
        for part in parts(count):
            filler.fill(part)
            seal(stage)
        stage.settle()
        yield stage


def parts(count: int, size: int = _PER_SEAL) -> list[int]:
    """Return a number in parts of a size that Redis holds easily."""
    return [min(size, count - first) for first in range(0, count, size)]


def seal(stage: Stage) -> None:
    """Seal and trim what the log holds.

    Raises:
        RuntimeError: the command failed, or left more than the last entries.
    """
    settings = msgspec.structs.replace(stage.settings, **AT_ONCE)
    redis = connect_redis(settings)
    EventLog(redis, settings).open()  # filled from outside, it may not have been born
    redis.close()
    memorybus(settings, "archive", "run")
    left = in_log(stage)
    if left > settings.partitions:
        raise RuntimeError(f"{left} entries are still in the log, not sealed or not trimmed")


def in_log(stage: Stage) -> int:
    """Return how many entries Redis holds."""
    return sum(stage.redis.xlen(stage.keys.log(p)) for p in range(stage.settings.partitions))


def not_sealed(stage: Stage) -> int:
    """Return how many events only the log has."""
    partitions = range(stage.settings.partitions)
    sealed = [stage.redis.hget(stage.keys.state(p), "sealed") for p in partitions]
    return sum(stage.heads().values()) - sum(int(n or 0) for n in sealed)


def memorybus(settings: Settings, *words: str) -> str:
    """Run a command of memorybus as a process of its own; return what it printed.

    Raises:
        RuntimeError: it failed.
    """
    run = subprocess.run(
        [sys.executable, "-m", "memorybus", *words],
        env=to_environ(settings, environment()),
        capture_output=True,
        text=True,
        timeout=10 * WAIT_SECONDS,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"memorybus {' '.join(words)}: {(run.stderr or run.stdout)[-800:]}")
    return run.stdout


def archive_files(stage: Stage, pattern: str = "*") -> list[Path]:
    """Return the archive's files, in order of their names."""
    root = stage.data_dir / "archive"
    return sorted(path for path in root.rglob(pattern) if path.is_file())


def segments(stage: Stage) -> list[Path]:
    """Return the Parquet files."""
    return archive_files(stage, "*.parquet")
