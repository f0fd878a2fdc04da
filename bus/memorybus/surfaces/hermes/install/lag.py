"""How far the providers are, for a look that must be over soon whatever Redis does."""

from typing import Any

import msgspec

from memorybus.config.settings import Settings
from memorybus.health.monitor import SpoolStatus, spool_status, watching
from memorybus.text.display import iso

LOOK = 0.7
"""Seconds for one answer of Redis."""


class Lag(msgspec.Struct, frozen=True):
    """One provider's backlog.

    Attributes:
        name: the instance.
        backlog: events of the log that it has not applied.
        last_applied_at: when the newest event it applied entered the log (ISO 8601, UTC).
        parked: keys that wait for an operator.
        failing: how its calls fail, while none succeeds.
    """

    name: str
    backlog: int
    last_applied_at: str | None
    parked: int
    failing: str


class Look(msgspec.Struct, frozen=True):
    """The bus at one moment.

    Attributes:
        spool: what this host has not sent.
        providers: their backlogs; empty if Redis is away.
        workers: how many are alive.
    """

    spool: SpoolStatus
    providers: list[Lag] = []
    workers: int = 0


def without_redis(settings: Settings) -> Look:
    """Return what this host can tell alone."""
    return Look(spool_status(settings))


def look(settings: Settings, timeout: float = LOOK) -> Look:
    """Look once.

    Args:
        settings: where the log is.
        timeout: seconds for each answer; the first that does not come ends the look.

    Raises:
        LogError: Redis does not answer, or holds something else.
    """
    with watching(settings, timeout) as monitor:
        workers = monitor.roster.alive()
        names = monitor.names()
        failing = {name: text for worker in workers for name, text in worker.failing.items()}
        lanes = monitor.lanes(names)
        providers = [_lag(name, lanes[name], failing.get(name, "")) for name in names]
        return Look(monitor.spool(), providers, len(workers))


def _lag(name: str, lanes: list[Any], failing: str) -> Lag:
    applied = [int(lane.entry.partition("-")[0]) for lane in lanes if lane.n]
    return Lag(
        name=name,
        backlog=sum(max(0, lane.head - lane.n - lane.done_above) for lane in lanes),
        last_applied_at=iso(max(applied, default=None)),
        parked=sum(lane.parked_keys for lane in lanes),
        failing=failing,
    )
