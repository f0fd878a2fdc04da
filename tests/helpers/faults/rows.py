"""What the rows of the fault suite share: a trial each, its seed, and the table at the end."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from memorybus.config.settings import Settings

from helpers.faults import scale
from helpers.faults.results import RESULTS, Round, commit, shown, together, write
from helpers.faults.trial import Trial, sinks
from helpers.processes.processes import Spawn
from helpers.redis.servers import RedisServer

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

_MAIN = ("faults", "events", "lost", "twice")
_ROUND = "round of the fault suite"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what each row counted, and keep it unless it is CI's short form.

    A round that failed counts as one, also where it ended before it had counted anything.
    """
    ended = [one for reports in terminalreporter.stats.values() for one in reports]
    called = [one for one in ended if getattr(one, "when", "") == "call"]
    found = [
        Round(**figures, passed=one.passed)
        for one in called
        for name, figures in one.user_properties
        if name == _ROUND
    ]
    lines = together(found, commit(), f"{datetime.now(UTC):%Y-%m-%d}", scale.SEED) if found else []
    if lines:
        terminalreporter.write_line(f"{scale.told()} on {lines[0].commit}")
    for line in lines:
        terminalreporter.write_line(f"  {shown(line, quick=scale.QUICK)}")
    if lines and not scale.QUICK:
        write(lines)
        terminalreporter.write_line(f"kept in {RESULTS}")


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Return a function that notes what a round counted: see `helpers.faults.results.Round`."""
    figures: dict[str, Any] = {"row": row_of(request.node), "share": scale.SHARE}
    request.node.user_properties.append((_ROUND, figures))

    def note(*, share: float | None = None, **counts: float) -> None:
        main = {name: counts.pop(name) for name in _MAIN if name in counts}
        figures.update(main, besides=counts, share=scale.SHARE if share is None else share)

    return note


def row_of(node: Any) -> str:
    """Return a row in words: its test and its parameters but the number of the round."""
    given = getattr(node, "callspec", None)
    name = str(node.originalname).removeprefix("test_").replace("_", " ")
    words = given.id.split("-") if given else []
    if given and "number" in given.params:
        words.remove(str(given.params["number"]))
    return ", ".join([name, *words])


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
