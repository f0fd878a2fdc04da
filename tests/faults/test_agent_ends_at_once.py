"""Agents that publish and end at once, with no module loaded before: a clean end sends (G1)."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from helpers.faults.scale import times
from helpers.processes.processes import Spawn
from helpers.processes.stalls import MARGIN
from helpers.stories.scenario import environ, log_length
from helpers.stories.spools import left_unsent
from memorybus.config.settings import Settings

EVENTS = 2
"""Events that each of them publishes: its session's start, and a turn."""

AGENTS = times(100, quick=10)
MAX_UNSENT = 0.01
"""The share of agents that a busy machine may keep from sending within their last 2 s."""

END_SECONDS = 2.0
"""Seconds that an end waits for Redis."""

_PUBLISH = """
import sys
from memorybus import MemoryBus
bus = MemoryBus.connect()
bus.session("s", warm=False).turn_completed("a", "b")
"""
_ASYNCIO = """
import asyncio
from memorybus import AsyncMemoryBus
async def main():
    session = await AsyncMemoryBus.connect().session("s", warm=False)
    await session.turn_completed("a", "b")
asyncio.run(main())
"""
_CHILD = """
import multiprocessing
from memorybus import MemoryBus
bus = MemoryBus.connect()
def child():
    with bus:
        bus.session("s", warm=False).turn_completed("a", "b")
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
"""
_THREAD = """
import threading
from memorybus import MemoryBus
def agent():
    MemoryBus.connect().session("s", warm=False).turn_completed("a", "b")
threading.Thread(target=agent).start()
"""
ENDS: Mapping[str, tuple[str, int]] = MappingProxyType({
    "the end of main": (_PUBLISH, 0),
    "sys.exit": (_PUBLISH + "sys.exit(3)", 3),
    "an uncaught exception": (_PUBLISH + "raise KeyError", 1),
    "asyncio": (_ASYNCIO, 0),
    "a forked child": (_CHILD, 0),
    "a thread after the end of main": (_THREAD, 0),
})  # fmt: skip
"""By its name: a program, and its exit code."""


def run(spawn: Spawn, settings: Settings, name: str) -> None:
    """Run a program to its end, and fail if it prints a traceback that is not its own."""
    program, code = ENDS[name]
    child = spawn("-c", program, env=environ(settings))
    assert child.wait() == code, child.output()
    assert child.output().count("Traceback") == (name == "an uncaught exception"), child.output()


@pytest.mark.parametrize("name", ENDS)
def test_an_agent_that_ends_at_once_has_sent(name, settings, redis_client, spawn):
    """G1: a program that publishes and ends by itself at once leaves nothing in its spool."""
    run(spawn, settings, name)
    assert log_length(redis_client, settings) == EVENTS
    assert left_unsent(settings) == 0


@pytest.mark.parametrize("name", ENDS)
def test_an_end_without_redis_is_quiet(name, make_settings, spawn, witness):
    """G1, G9: without Redis such a program ends in time, and its spool keeps the events."""
    settings = make_settings(url="")
    _, took = witness.timed(lambda: run(spawn, settings, name))
    assert took < END_SECONDS + MARGIN
    assert len(list(settings.spool_dir.glob("*.db"))) >= 1


_AT_EXIT = (
    "import atexit\ndef publish():"
    + _PUBLISH.replace("\n", "\n    ")
    + """
atexit.register(publish)
"""
)


def test_a_bus_made_in_an_exit_function_accepts(settings, spawn):
    """G1, G9: Python ends and loads no client of Redis any more: the spool keeps the events."""
    child = spawn("-c", _AT_EXIT, env=environ(settings))
    assert child.wait() == 0
    assert child.output() == ""
    assert left_unsent(settings) == EVENTS


@pytest.mark.fault
@pytest.mark.timeout(600)
def test_agents_end_at_once_again_and_again(make_settings, redis_client, spawn, report):
    """G1: of a hundred programs that end at once, 99 have sent; the spool keeps the others'."""
    base = make_settings()
    names = [name for _ in range(AGENTS) for name in ENDS][:AGENTS]
    unsent = 0
    for number, name in enumerate(names):
        place = make_settings(
            data_dir=base.data_dir / f"{number}", namespace=f"{base.namespace}{number}"
        )
        run(spawn, place, name)
        unsent += log_length(redis_client, place) < EVENTS
    report(faults=AGENTS, events=AGENTS * EVENTS, agents_with_unsent_events=unsent)
    assert unsent <= MAX_UNSENT * AGENTS
