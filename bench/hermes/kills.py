"""Turns whose answer the person has seen, and which memory does not have after ``kill -9``.

A process of Hermes talks, and is killed at a random point of its conversation (or before it has
begun one). Afterwards, with memorybus: what is in the log before and after ``memorybus hermes
reconcile --apply``, and whether anything is there twice. Without it: what Hermes's bundled
holographic plugin (``auto_extract`` on, statements that its patterns know) has in its database,
and, so that the comparison is fair, what it has after as many orderly exits.
"""

import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

from helpers.hermes.hermes_agent import HAS_HOLOGRAPHIC, Hermes
from helpers.hermes.hermes_kills import TURNS, killed
from helpers.hermes.hermes_world import World


def measure(size: Any) -> dict[str, float]:
    """Return counts of turns; without the bus only where Hermes has the plugin."""
    return _with_bus(size.kills) | (_alone(size.kills) if HAS_HOLOGRAPHIC else {})


def _with_bus(kills: int) -> dict[str, float]:
    world = World()
    try:
        told = killed(world.hermes(), kills)
        world.drain()
        before = Counter(world.turns())
        world.reconcile()
        world.drain()
        after = Counter(world.turns())
        return {
            "hermes_kills": float(kills),
            "hermes_kills_turns_told": float(len(told)),
            "hermes_kills_lost_before_reconcile": float(len(set(told) - set(before))),
            "hermes_kills_lost": float(len(set(told) - set(after))),
            "hermes_kills_twice": float(sum(count - 1 for count in after.values())),
        }
    finally:
        world.close()


def _alone(kills: int) -> dict[str, float]:
    world = World(plugin="holographic")
    try:
        world.home.config["plugins"] = {"hermes-memory-store": {"auto_extract": True}}
        world.home.write_config()
        hermes = world.hermes()
        told = killed(hermes, kills)
        left = _left(hermes, max(3, kills // 20))
        facts = _facts(world)
        return {
            "hermes_alone_kills_turns_told": float(len(told)),
            "hermes_alone_kills_lost": float(sum(text not in facts for text in told)),
            "hermes_alone_left_turns_told": float(len(left)),
            "hermes_alone_left_lost": float(sum(text not in facts for text in left)),
        }
    finally:
        world.close()


def _left(hermes: Hermes, count: int) -> list[str]:
    told = []
    for number in range(count):
        hermes.fork()
        texts = [f"I prefer ship left{number} number {turn}" for turn in range(TURNS)]
        for text in texts:
            hermes.chat(text)
        hermes.leave_fork()
        told += texts
    return told


def _facts(world: World) -> str:
    with closing(sqlite3.connect(world.home.path / "memory_store.db")) as db:
        return "\n".join(row[0] for row in db.execute("select content from facts"))
