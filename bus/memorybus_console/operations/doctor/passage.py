"""The canary of `memorybus doctor`: an event that lanes pass without calling a backend."""

from contextlib import suppress

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import LogError
from memorybus.events import CanarySent, Scope, SessionRef
from memorybus.health.finding import Check
from memorybus.health.monitor import Monitor, open_monitor
from memorybus.log.stream import Head
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, partition_of, session_key
from memorybus.registry.canary import note_arrival

from memorybus_console.operations.doctor.canary import LOG_TIMEOUT, LOOK_EVERY
from memorybus_console.operations.journal import CANARY_PREFIX, CANARY_SCOPE

PASSED_WITHIN = 10.0
"""Seconds in which every lane of the canary's partition has to pass it."""


class CanaryPassage(msgspec.Struct, frozen=True):
    """How far a canary came.

    Attributes:
        logged: whether Redis took its event.
        waits: the providers whose lanes did not pass it in time.
        seconds: how long that took.
    """

    logged: bool
    waits: tuple[str, ...]
    seconds: float


def send_and_await(settings: Settings, clock: Clock, word: str) -> CanaryPassage:
    """Publish a canary, wait until every provider's lane has passed it, and note when that was.

    Args:
        settings: see `Settings`.
        clock: time.
        word: a part of its session's id, which determines its partition.

    Raises:
        MemoryBusError: nothing can be published, or Redis is away.
    """
    begun = clock.monotonic()
    with open_monitor(settings) as monitor:
        partition = _publish_canary(settings, word)
        if partition is None:
            return CanaryPassage(logged=False, waits=(), seconds=clock.monotonic() - begun)
        waits = _await_lanes(monitor, monitor.log.heads()[partition], clock)
    if not waits:
        _note_passage(settings, clock)
    return CanaryPassage(logged=True, waits=tuple(waits), seconds=clock.monotonic() - begun)


def check_passage(passage: CanaryPassage) -> Check:
    """Return how far a canary came as a check."""
    name = "canary"
    if not passage.logged:
        found = "published, but Redis did not take it in time: it waits in the spool"
        return Check(name=name, ok=False, found=found, fix="run: memorybus status")
    if passage.waits:
        found = f"not applied within {PASSED_WITHIN:g} s by: {', '.join(passage.waits)}"
        fix = "see the backlog with `memorybus status`, and the worker's log"
        return Check(name=name, ok=False, found=found, fix=fix)
    found = f"published and passed by every lane in {passage.seconds * 1000:.0f} ms"
    return Check(name=name, ok=True, found=found)


def _publish_canary(settings: Settings, word: str) -> int | None:
    """Publish the canary; return its partition, None if Redis did not take it in time."""
    scope = Scope(agent=CANARY_SCOPE, user=CANARY_SCOPE)
    name = CANARY_PREFIX + word
    key = session_key(scope, name)
    with MemoryBus.connect(settings) as bus:
        bus.publish(CanarySent(), key=key, scope=scope, session=SessionRef(id=name, root=name))
        logged = bus.flush("logged", timeout=LOG_TIMEOUT)
    return partition_of(key, settings.partitions) if logged else None


def _await_lanes(monitor: Monitor, place: Head, clock: Clock) -> list[str]:
    """Wait for the lanes of a partition; return the providers that did not pass it in time."""
    deadline = clock.monotonic() + PASSED_WITHIN
    while (waits := monitor.providers_before(place)) and clock.monotonic() < deadline:
        clock.sleep(LOOK_EVERY)
    return waits


def _note_passage(settings: Settings, clock: Clock) -> None:
    """Note when the canary arrived; the check passes even if the note cannot be written."""
    redis = connect_redis(settings)
    with suppress(LogError):
        note_arrival(redis, Keys(settings.namespace), clock.now_ms())
    redis.close()
