"""One conversation, played by a hosted plugin or by the same plugin inside Hermes itself."""

import json
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memorybus.events import MemoryWritten, SessionEnded, SessionStarted, TurnCompleted
from memorybus_providers.adapters.hermes import HostedHermesProvider

from helpers.hosted.hosted import context

Step = tuple[Any, ...]

CONVERSATION: Sequence[Step] = (
    ("turn", "I prefer dark roast over light roast coffee", "Noted."),
    ("write", "add", "user", "Anna prefers tea in the evening"),
    ("write", "add", "memory", "The server's name is Grete"),
    ("write", "add", "memory", "The server's name is Grete"),
    ("write", "replace", "memory", "The server's name is Hans"),
    (
        "tool",
        "fact_store",
        {"action": "add", "content": "Bo Smith works at Acme", "category": "project"},
    ),
    ("tool", "fact_store", {"action": "update", "fact_id": 2, "trust_delta": 0.2}),
    ("tool", "fact_store", {"action": "add", "content": "Forget me", "tags": "x"}),
    ("tool", "fact_store", {"action": "remove", "fact_id": 4}),
    ("tool", "fact_feedback", {"action": "helpful", "fact_id": 1}),
    ("turn", "We decided to use Postgres for the project", "A good choice."),
    ("end",),
)


def play(provider: HostedHermesProvider, steps: Sequence[Step] = CONVERSATION) -> None:
    """Apply the steps as events."""
    provider.initialize(SessionStarted(platform="cli"), context())
    for kind, *values in steps:
        if kind == "turn":
            provider.sync_turn(TurnCompleted(user=values[0], assistant=values[1]), context())
        elif kind == "write":
            action, store, content = values
            event = MemoryWritten(action=action, store=store, content=content)
            provider.on_memory_write(event, context())
        elif kind == "tool":
            provider.handle_tool_call(*values, context())
        else:
            provider.on_session_end(SessionEnded(), context())


def play_inside(python: Path, home: Path, plugin: str, query: str) -> str:
    """Play the steps through Hermes's own manager; return what it recalls at the end."""
    given = {"plugin": plugin, "steps": CONVERSATION, "query": query}
    program = Path(__file__).parents[1] / "hermes" / "hermes_direct.py"
    env = {"HERMES_HOME": str(home), "HOME": str(home), "HERMES_DISABLE_LAZY_INSTALLS": "1"}
    done = subprocess.run(
        [python, "-I", program],
        input=json.dumps(given),
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["recall"])


def facts(home: Path) -> list[tuple[Any, ...]]:
    """Return the rows of holographic's store that are no clock's, with their entities."""
    db = sqlite3.connect(home / "memory_store.db")
    try:
        rows = db.execute(
            "select fact_id, content, category, tags, trust_score, helpful_count from facts "
            "order by fact_id"
        ).fetchall()
        entities = db.execute(
            "select fact_id, name from fact_entities join entities using (entity_id) order by 1, 2"
        ).fetchall()
    finally:
        db.close()
    return [*rows, *entities]
