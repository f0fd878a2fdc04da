"""What the rows of the fault suite share: a trial each, its seed, and the table at the end."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memorybus.settings import Settings

from helpers import scale
from helpers.processes import Spawn
from helpers.servers import RedisServer
from helpers.trial import Trial, sinks

FAST: dict[str, Any] = {
    "lease": 0.9,
    "call_timeout": 0.5,
    "batch": 100,
    "spool_keep": 5.0,
    "dedupe_window": 86_400.0,
}
"""Leases so short that a run sees many take-overs."""

MakeTrial = Callable[..., Trial]
Report = Callable[..., None]

_ROW = "row of the fault suite"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the seed and what each row saw: the figures of docs/guarantees.md."""
    ended = [one for reports in terminalreporter.stats.values() for one in reports]
    called = [one for one in ended if getattr(one, "when", "") == "call"]
    rows = [found for one in called for name, found in one.user_properties if name == _ROW]
    if rows:
        how = "QUICK=1 " if scale.QUICK else f"FAULT_SCALE={scale.SCALE:g} "
        terminalreporter.write_line(f"fault suite: {how}SEED={scale.SEED}")
        for row in rows:
            terminalreporter.write_line(f"  {row}")


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Return a function that notes what a row saw, for the table at the end."""

    def note(**figures: Any) -> None:
        text = ", ".join(f"{name} {value}" for name, value in figures.items())
        request.node.user_properties.append((_ROW, f"{request.node.name}: {text}"))

    return note


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Return this test's random choices: the same for the same seed, which a failure shows."""
    print(f"SEED={scale.SEED}")
    return scale.chances(request.node.name)


@pytest.fixture
def make_trial(
    make_settings: Callable[..., Settings], spawn: Spawn, rng: random.Random, tmp_path: Path
) -> MakeTrial:
    """Make a run on a server: ``make_trial(server, "Keyed", "Blind", lease=2.0)``."""

    def make(server: RedisServer, *classes: str, **overrides: Any) -> Trial:
        given = {"url": server.url, **FAST, **sinks(tmp_path / "sinks", *classes), **overrides}
        return Trial(make_settings(**given), server, spawn, rng, tmp_path)

    return make


@pytest.fixture
def aof_redis(make_redis: Callable[..., RedisServer]) -> RedisServer:
    """Return a server that keeps its data across a kill, in one file that only grows."""
    return make_redis(appendonly="yes", auto_aof_rewrite_percentage="0")
