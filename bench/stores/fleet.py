"""What instances cost by themselves, one after the other: a turn, a recall, an erasure.

``python bench/stores/fleet.py NAME … [--turns N]``. Instances of the settings, or kinds, opened as
a worker opens them, without log and lanes: turns of one person over 50 sessions, in batches of 100
where the provider has transactions, then 200 questions on a second instance. A server's own time is
in it, and the way to it. What was written is erased. Prints a line of JSON for each.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from gauge import p50, p99
from memorybus.clock import SYSTEM
from memorybus.config.settings import load
from memorybus.events import MemoryWritten, Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import new_id, new_mark
from memorybus_providers.base import (
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    RecallContext,
    RecallScope,
    TransactionalProvider,
)
from memorybus_providers.dispatch import bind
from memorybus_workers.hosting.instances import make_instance
from texts import Turn, turns

_BATCH, _QUESTIONS, _WORDS, _SEED = 100, 200, 6, 11
LANE = "bench"


class Owner(msgspec.Struct, frozen=True):
    """Whose memories are made and erased again."""

    scope: Scope

    @property
    def recalled(self) -> RecallScope:
        """The same for recalls."""
        return RecallScope.own(self.scope)


def measure(name: str, count: int, directory: Path) -> dict[str, Any]:
    """Return an instance's figures: milliseconds."""
    settings = load(data_dir=directory)
    owner = Owner(Scope("bench", f"bench-{new_mark()}"))
    said = list(turns(count, seed=_SEED))
    writer, asked = (make_instance(settings, name, SYSTEM) for _ in range(2))
    writer.open()
    spent = [written(writer, said[at : at + _BATCH], owner) for at in range(0, count, _BATCH)]
    asked.open()
    answers = recalls(asked, said, owner)
    began = time.perf_counter()
    residue = asked.forget(owner.recalled) if asked.capabilities.forgets else None
    erased = (time.perf_counter() - began) * 1e3
    for one in (writer, asked):
        one.shutdown()
    return {
        "name": name,
        "turns": count,
        "turn_ms": round(sum(spent) / count * 1e3, 3),
        "recall_p50_ms": round(p50(answers) * 1e3, 2),
        "recall_p99_ms": round(p99(answers) * 1e3, 2),
        "forget_ms": round(erased, 1) if residue else None,
        "remains": list(residue.remains) if residue else ["it cannot erase"],
    }


def written(writer: MemoryProvider, said: Sequence[Turn], owner: Owner) -> float:
    """Write turns, or what they say as memory entries; return the seconds."""
    events = [(turn, new_id(), event_of(writer, turn)) for turn in said]
    began = time.perf_counter()
    if isinstance(writer, TransactionalProvider):
        with writer.transaction(Fence(LANE, 1)) as transaction:
            call(writer, events, owner)
            transaction.record([one for _, one, _ in events], Progress(1, "0-0", 0))
    else:
        call(writer, events, owner)
    return time.perf_counter() - began


def event_of(writer: MemoryProvider, turn: Turn) -> TurnCompleted | MemoryWritten:
    """Return a turn, or for who hears of none an entry of the user store."""
    if TurnCompleted in writer.capabilities.handles:
        return TurnCompleted(user=turn.user, assistant=turn.assistant, ordinal=turn.ordinal)
    return MemoryWritten(action="add", store="user", content=turn.user)


def call(writer: MemoryProvider, events: Sequence[Any], owner: Owner) -> None:
    """Call the hooks."""
    apply = bind(writer)
    for turn, event_id, event in events:
        session = SessionRef(f"bench-{turn.session}", f"bench-{turn.session}")
        position = Position(0, "0-1", 1)
        at = SYSTEM.now_ms()
        apply(event, HookContext(owner.scope, session, event_id, position, at, 30.0))


def recalls(asked: MemoryProvider, said: Sequence[Turn], owner: Owner) -> list[float]:
    """Ask with words of what was said; return the seconds of each answer."""
    rng = random.Random(_SEED)
    context = RecallContext(scope=owner.recalled, deadline=30.0)
    spent = []
    for _ in range(_QUESTIONS):
        words = rng.choice(said).user.split()
        query = " ".join(rng.sample(words, min(_WORDS, len(words)))) + "?"
        began = time.perf_counter()
        asked.prefetch(query, context)
        spent.append(time.perf_counter() - began)
    return spent


def main() -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--turns", type=int, default=2_000)
    options = parser.parse_args()
    for name in options.names:
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(measure(name, options.turns, Path(directory))), flush=True)


if __name__ == "__main__":
    main()
