"""The canary of `memorybus doctor --deep`: a memory that a provider has to apply and recall."""

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.health.finding import Check

from memorybus_console.operations.journal import CANARY_PREFIX, CANARY_SCOPE

RECALLED_WITHIN = 10.0
LOG_TIMEOUT = 3.0
RECALL_TIMEOUT = 3.0
LOOK_EVERY = 0.05


class CanaryRecall(msgspec.Struct, frozen=True):
    """How far a canary came.

    Attributes:
        logged: whether Redis took its event.
        recalled: whether a provider applied the event and recalled its text.
        seconds: how long that took.
        line: the recalled line.
    """

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
        found = bus.recall(word, agent=CANARY_SCOPE, user=CANARY_SCOPE, timeout=RECALL_TIMEOUT)
        for line in found.text.splitlines():
            if word in line:
                return line
        clock.sleep(LOOK_EVERY)
    return ""


def _remove_word(session: Session, word: str) -> None:
    session.memory_written("remove", store="user", old_text=word)
    session.ended("canary")
