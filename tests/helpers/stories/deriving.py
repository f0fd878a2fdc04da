"""A person's session that workers derive, and what they have concluded so far."""

from collections import Counter
from typing import Any

from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.events import Scope
from memorybus_providers.base import RecallScope
from memorybus_workers.hosting.instances import make_instance

from helpers.processes.processes import Child
from helpers.stories.scenario import environ
from helpers.stories.world import World

DERIVING: dict[str, Any] = {
    "providers": ("holographic",),
    "derivers": ("extractive",),
    "user": "ada",
}
"""Settings of a laptop: one provider that keeps facts, and the deriver that needs no model."""

KINDS = {"summary": 1, "topic": 1, "profile": 1}
"""How many conclusions of each kind one session leads to."""

_TALK = (
    "I moved to Bergen in May and work at the harbour office now.",
    "My sister Nora visits me in Bergen on Saturday.",
    "Never send me mails before nine in the morning.",
)


def talk(bus: MemoryBus, name: str) -> None:
    """Let a session tell something, and end."""
    session = bus.session(name, warm=False)
    for number, text in enumerate(_TALK):
        session.turn_completed(text, "Noted.", ordinal=number)
    session.ended("over")
    assert bus.flush("logged", 30), bus.problem


def tell_and_stop(world: World, *sessions: str) -> None:
    """Let sessions end, and a worker apply them that may not derive: they stay due."""
    turn = world.keys.deriving("holographic")
    world.redis.set(turn, "nobody", ex=600)
    child = world.worker()
    with world.bus() as bus:
        for name in sessions:
            talk(bus, name)
    world.wait_applied()
    assert child.terminate() == 0
    world.redis.delete(turn)


def derives(world: World) -> bool:
    """Return whether a worker has the turn to derive."""
    return bool(world.redis.exists(world.keys.deriving("holographic")))


def worker_dying_at(world: World, point: str) -> Child:
    """Start a worker that dies at a crash point."""
    env = environ(world.settings) | {"MEMORYBUS_CRASH_AT": point}
    return world.spawn("-m", "memorybus_workers", "worker", "--jobs", "0", env=env)


def conclusions(world: World) -> list[dict[str, Any]]:
    """Return the conclusions in the log, as `events ls` shows them."""
    rows: list[dict[str, Any]] = world.result("events", "ls", "--type", "Derived")
    return rows


def kept_kinds(world: World) -> dict[str, int]:
    """Return how many conclusions of each kind the store keeps of the person."""
    scope = Scope(agent=world.settings.agent, user=world.settings.user)
    store = make_instance(world.settings, "holographic", SYSTEM)
    store.open()
    try:
        kinds = (memory.kind for memory in store.export(RecallScope.own(scope)))
        return dict(Counter(kind for kind in kinds if kind in KINDS))
    finally:
        store.shutdown()
