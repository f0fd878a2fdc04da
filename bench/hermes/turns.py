"""What a turn takes longer with memory than without, recall included.

Two Hermes processes, one with memorybus and a worker, one without memory, take turns in turn, as
the gateway's agents do (no terminal in between). ``hermes_turn_added_p50_ms`` is the difference of
the medians; ``hermes_turn_hooks_p50_ms`` the time in hooks that a turn waits for, which noise
reaches less.
"""

import statistics
from typing import Any

from helpers.hermes.hermes_world import World

_WAITED_FOR = ("on_turn_start", "prefetch")


def measure(size: Any) -> dict[str, float]:
    """Return the figures in milliseconds."""
    world = World(prefetch_deadline=0.05)
    try:
        world.worker()
        agents = {"bus": world.hermes(), "plain": world.hermes(world.make_home("plain", ""))}
        seconds: dict[str, list[float]] = {name: [] for name in agents}
        for number in range(size.turns + 1):
            for name, hermes in agents.items():
                text = f"turn {number} about the harbour and the {number}th boat"
                took = hermes.do("message", session="s", user="u", text=text)["s"]
                if number:  # the first builds the agent
                    seconds[name].append(took)
        agents["bus"].do("settle")
        p50 = {name: 1e3 * statistics.median(times) for name, times in seconds.items()}
        return {
            "hermes_turn_p50_ms": p50["bus"],
            "hermes_turn_plain_p50_ms": p50["plain"],
            "hermes_turn_added_p50_ms": p50["bus"] - p50["plain"],
            "hermes_turn_hooks_p50_ms": _hooks(world, size.turns),
        }
    finally:
        world.close()


def _hooks(world: World, turns: int) -> float:
    parts = [[h.ms for h in world.home.hooks(name)][-turns:] for name in _WAITED_FOR]
    return statistics.median(map(sum, zip(*parts, strict=True)))
