"""How long each hook holds Hermes up: Redis there, stopped by SIGSTOP, and dead.

The real Hermes process drives the hooks through its own `MemoryManager`, as turns do, one round
every 5 ms; each call is timed around the provider's method. ``prefetch`` runs on a thread that
Hermes waits for, the others of `INLINE` on the agent's own.
"""

import statistics
from typing import Any

from helpers.hermes.hermes_agent import Hook
from helpers.hermes.hermes_world import World

INLINE = (
    "on_turn_start",
    "on_memory_write",
    "on_delegation",
    "on_session_end",
    "on_session_switch",
)
QUEUED = ("sync_turn", "queue_prefetch")
_PAUSE_SECONDS = 0.005
_STATES = ("up", "stopped", "dead")


def measure(size: Any) -> dict[str, float]:
    """Return p50 and p99 of the hooks in milliseconds, in each state of Redis."""
    world = World(prefetch_deadline=0.05)
    try:
        world.worker()
        hermes = world.hermes()
        hermes.do("storm", rounds=20, pause=_PAUSE_SECONDS)  # the first calls load code
        found: dict[str, float] = {}
        for state in _STATES:
            before = len(world.home.hooks())
            _enter(world, state)
            hermes.do("storm", rounds=size.rounds, pause=_PAUSE_SECONDS)
            found |= _figures(state, world.home.hooks()[before:])
            if state == "stopped":
                world.server.thaw()
        failed = [line for line in world.home.log().splitlines() if "memorybus" in line]
        assert not any("failed" in line for line in failed), failed  # quick because it did nothing
        return found
    finally:
        world.close()


def _enter(world: World, state: str) -> None:
    if state == "stopped":
        world.server.freeze()
    elif state == "dead":
        world.server.kill()


def _figures(state: str, hooks: list[Hook]) -> dict[str, float]:
    found: dict[str, float] = {}
    groups = {"inline": INLINE, "prefetch": ("prefetch",), "queued": QUEUED}
    for name, members in groups.items():
        times = [hook.ms for hook in hooks if hook.hook in members]
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        found[f"hermes_{name}_{state}_p50_ms"] = cuts[49]
        found[f"hermes_{name}_{state}_p99_ms"] = cuts[98]
    worst = {
        member: statistics.quantiles(times, n=100, method="inclusive")[98]
        for member in INLINE
        if len(times := [h.ms for h in hooks if h.hook == member]) > 1
    }
    found[f"hermes_inline_{state}_slowest_hook_p99_ms"] = max(worst.values())
    return found
