"""Copies for tests: made as the command makes them, filled by a thread or a child."""

from collections.abc import Mapping
from typing import Any

import msgspec
from memorybus.config.settings import Settings
from memorybus.processes.reports import InstanceDescription
from memorybus.query.query import EVERYTHING, Query
from memorybus_console.operations.copies import replay as replaying
from memorybus_console.operations.stores import Stores
from memorybus_workers.provider_commands.offers import describe

from helpers.processes.processes import Child, Spawn
from helpers.stories.scenario import NAME, environ, thread_worker

COPY = "copy"


class Filled(msgspec.Struct, frozen=True):
    """What a finished replay says.

    Attributes:
        applied: events that its plan takes, without what is parked.
        parked: events put aside.
    """

    applied: int
    parked: int


def begun(
    settings: Settings,
    into: str = COPY,
    provider: str = NAME,
    query: Query = EVERYTHING,
    **more: Any,
) -> replaying.ReplayPlan:
    """Make a copy known, as the command does."""
    with Stores(settings) as stores:
        wanted = replaying.ReplayRequest(provider=provider, into=into, query=query, **more)
        plan = replaying.plan_replay(stores, wanted, describe=described_here)
        return replaying.begin_replay(stores, plan, wanted)


def described_here(settings: Settings, *asked: Any) -> InstanceDescription:
    """Ask in this process, which can import the providers of the tests."""
    return describe(settings, *asked)


def replay(
    settings: Settings,
    into: str = COPY,
    provider: str = NAME,
    query: Query = EVERYTHING,
    **more: Any,
) -> Filled:
    """Fill a copy with a worker of this process that serves it alone; return once it has all."""
    plan = begun(settings, into, provider, query, **more)
    with thread_worker(settings, only=into):
        return finished(settings, plan)


def finished(settings: Settings, plan: replaying.ReplayPlan) -> Filled:
    """Wait until a copy has all, whoever fills it."""
    with Stores(settings) as stores:
        *_, last = replaying.follow_progress(stores, plan.instance, None)
    return Filled(last.done - last.parked, last.parked)


def command(spawn: Spawn, settings: Settings, *words: str, into: str = COPY) -> Child:
    """Start ``memorybus replay --yes`` into a copy, as a process."""
    said = ("replay", "--provider", NAME, "--into", into, "--yes", "--json", *words)
    return cli(spawn, settings, *said)


def cli(spawn: Spawn, settings: Settings, *words: str) -> Child:
    """Start the command line as a process that finds these settings and the test helpers."""
    return spawn("-m", "memorybus_console.cli", *words, env=environ(settings))


def lines(child: Child) -> list[Mapping[str, Any]]:
    """Return the JSON lines that a process printed."""
    printed = (line for line in child.output().splitlines() if line.startswith('{"'))
    return [msgspec.json.decode(line) for line in printed]
