"""The canaries of `memorybus doctor`: an event that lanes pass, and with `--deep` a memory.

Lanes pass the event without calling a backend; the memory has to be applied and recalled.
"""

from contextlib import suppress

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
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

from memorybus_console.operations.journal import CANARY_PREFIX, CANARY_SCOPE

PASSED_WITHIN = 10.0
"""Seconds in which every lane of the canary's partition has to pass it."""


class CanaryPassage(msgspec.Struct, frozen=True):
    """How far a canary came.

    Attributes:
        waits: the providers whose lanes did not pass it in time.
    """

    logged: bool
    waits: tuple[str, ...]
    seconds: float


def send_and_await(settings: Settings, clock: Clock, word: str) -> CanaryPassage:
    """Publish a canary, wait until every provider's lane has passed it, and note when that was.

    Args:
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
    found = f"published, and reached every lane in {passage.seconds * 1000:.0f} ms"
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


RECALLED_WITHIN = 10.0
LOG_TIMEOUT = 3.0
RECALL_TIMEOUT = 3.0
LOOK_EVERY = 0.05


class CanaryRecall(msgspec.Struct, frozen=True):
    """How far a canary came."""

    logged: bool
    recalled: bool
    seconds: float
    line: str = ""


def send_and_recall(settings: Settings, clock: Clock, word: str) -> CanaryRecall:
    """Write a unique word to the canaries' store, recall it, and remove it again.

    The word is removed even if this is interrupted; the removal then waits in the spool.

    Raises:
        MemoryBusError: nothing can be published, or no worker answers recalls.
    """
    begun = clock.monotonic()
    logged, line = False, ""
    with MemoryBus.connect(settings) as bus:
        session = bus.session(
            CANARY_PREFIX + word, agent=CANARY_SCOPE, user=CANARY_SCOPE, warm=False
        )
        session.memory_written("add", f"The canary of the doctor sings {word}.", store="user")
        try:
            logged = bus.flush("logged", timeout=LOG_TIMEOUT)
            line = _recalled_line(bus, word, clock) if logged else ""
        finally:
            _remove_word(session, word)
            bus.flush("logged", timeout=LOG_TIMEOUT if logged else 0)
    return CanaryRecall(logged, bool(line), clock.monotonic() - begun, line)


def check_recall(result: CanaryRecall) -> Check:
    """Return how far a canary came as a check."""
    name = "canary"
    if result.recalled:
        found = f"published, applied and recalled in {result.seconds * 1000:.0f} ms: {result.line}"
        return Check(name=name, ok=True, found=found)
    if not result.logged:
        found = "published, but Redis did not take it in time: it waits in the spool"
        return Check(name=name, ok=False, found=found, fix="run: memorybus status")
    return Check(
        name=name,
        ok=False,
        found=f"published and logged, not recalled within {RECALLED_WITHIN:g} s",
        fix="see the backlog with `memorybus status`, dead letters with `memorybus dlq ls`",
    )


def _recalled_line(bus: MemoryBus, word: str, clock: Clock) -> str:
    """Return the line that recalls the word; "" if none does in time."""
    deadline = clock.monotonic() + RECALLED_WITHIN
    while clock.monotonic() < deadline:
        answer = bus.recall(word, agent=CANARY_SCOPE, user=CANARY_SCOPE, timeout=RECALL_TIMEOUT)
        for line in answer.text.splitlines():
            if word in line:
                return line
        clock.sleep(LOOK_EVERY)
    return ""


def _remove_word(session: Session, word: str) -> None:
    session.memory_written("remove", store="user", old_text=word)
    session.ended("canary")
