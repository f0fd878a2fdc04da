"""The canary of `memorybus doctor`: one event through the whole system, and its memory back."""

import msgspec

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.operations.journal import CANARY_PREFIX, CANARY_SCOPE

SINGS_WITHIN = 10.0
LOG_TIMEOUT = 3.0
RECALL_TIMEOUT = 3.0
LOOK_EVERY = 0.05


class Flight(msgspec.Struct, frozen=True):
    """How far a canary came.

    Attributes:
        logged: Redis took its event.
        recalled: a provider applied it and remembered it.
        seconds: how long that took.
    """

    logged: bool
    recalled: bool
    seconds: float


def fly(settings: Settings, clock: Clock, word: str) -> Flight:
    """Write a unique word to the canaries' store, recall it, remove it again.

    It is removed also when this is interrupted: the removal waits in the spool then.

    Raises:
        MemoryBusError: nothing can be published, or nobody answers recalls.
    """
    begun = clock.monotonic()
    logged = recalled = False
    with MemoryBus.connect(settings) as bus:
        session = bus.session(
            CANARY_PREFIX + word, agent=CANARY_SCOPE, user=CANARY_SCOPE, warm=False
        )
        session.memory_written("add", f"The canary of the doctor sings {word}.", store="user")
        try:
            logged = bus.flush("logged", timeout=LOG_TIMEOUT)
            recalled = logged and _sings(bus, word, clock)
        finally:
            _removed(session, word)
            bus.flush("logged", timeout=LOG_TIMEOUT if logged else 0)
    return Flight(logged, recalled, clock.monotonic() - begun)


def _sings(bus: MemoryBus, word: str, clock: Clock) -> bool:
    deadline = clock.monotonic() + SINGS_WITHIN
    while clock.monotonic() < deadline:
        found = bus.recall(word, agent=CANARY_SCOPE, user=CANARY_SCOPE, timeout=RECALL_TIMEOUT)
        if word in found.text:
            return True
        clock.sleep(LOOK_EVERY)
    return False


def _removed(session: Session, word: str) -> None:
    session.memory_written("remove", store="user", old_text=word)
    session.ended("canary")
