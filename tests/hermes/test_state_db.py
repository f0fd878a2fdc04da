"""Hermes's own `SessionDB` writes a state.db, and reconcile's reader understands it."""

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes import hermes_state
from helpers.hermes.hermes_agent import PYTHON
from memorybus_hermes.plugin.usage import TurnUsage, UsageMeter
from memorybus_hermes.reconcile import survey
from memorybus_hermes.reconcile.history_index import HistoryIndex
from memorybus_hermes.reconcile.survey import without_copies
from memorybus_hermes.transcripts.state_db import (
    WRITTEN_FOR,
    SessionUsage,
    StateDb,
    read_usage,
)
from memorybus_hermes.transcripts.stored_turns import read_turns

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.releases,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]

_STORY = """
import sys
from pathlib import Path
from hermes_state import SessionDB
from agent.context_compressor import SUMMARY_PREFIX

db = SessionDB(Path(sys.argv[1]))

def turn(session, number):
    db.append_message(session, "user", f"q{number}")
    db.append_message(session, "assistant", f"a{number}")

db.create_session("s", "cli", model="m")
for number in range(4):
    turn("s", number)
kept = db.get_messages_as_conversation("s")
summary = {"role": "assistant", "content": SUMMARY_PREFIX + " all of it"}
db.archive_and_compact("s", [*kept[:3], summary, *kept[-2:]])
turn("s", 4)
undone = db.append_message("s", "user", "undone")
db.append_message("s", "assistant", "yes")
db.rewind_to_message("s", undone)
parts = [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "x"}}]
db.append_message("s", "user", parts)
db.append_message("s", "assistant", "a ship")
db.end_session("s", "branched")
db.create_session("b", "cli", model_config={"_branched_from": "s"}, parent_session_id="s")
for message in db.get_messages_as_conversation("s"):
    db.append_message("b", message["role"], message["content"])
turn("b", 5)
db.create_session("sub", "subagent", model_config={"_delegate_from": "b"}, parent_session_id="b")
turn("sub", 6)
for tokens in (30, 40):
    db.update_token_counts(
        "sub", input_tokens=tokens, output_tokens=3, cache_read_tokens=100, model="m-2",
        billing_provider="p", api_call_count=1,
    )
db.record_auxiliary_usage("sub", "title_generation", model="m-3", input_tokens=999)
db.close()
"""


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    """Return a state.db that the real Hermes wrote."""
    path = tmp_path / "state.db"
    _run_hermes(path, _STORY)
    return path


def _run_hermes(path: Path, story: str, *arguments: str) -> None:
    home = str(path.parent)
    subprocess.run(
        [PYTHON, "-c", story, path, *arguments],
        env={"HERMES_HOME": home, "HOME": home, "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        timeout=60,
    )


def test_what_hermes_wrote_is_read(path):
    """Compaction, undo, parts, a branch and a sub-agent: each turn once, in its own session."""
    told: list[tuple[str, str, str]] = []
    with StateDb(path) as db, HistoryIndex() as known:
        for session in db.sessions():
            place = survey.find_place(session, db.session, known.session)
            if place is None:
                assert session.id == "sub"
                continue
            assert place.ref.root == "s"
            found = without_copies(
                read_turns(db.rows(session.id), 1 << 20),
                lambda turn: known.first_seen("s", turn.user, turn.assistant),
                continued=place.origin != "start",
            )
            told += [(session.id, turn.user, turn.assistant) for turn in found]
    own = [("s", f"q{n}", f"a{n}") for n in range(5)]
    assert told == [*own, ("s", "[1 image] Look", "a ship"), ("b", "q5", "a5")]


def test_what_hermes_counts_is_read(path):
    """A session's tokens are those of its main loop's calls, and its model the last of them."""
    assert read_usage(path, "sub") == SessionUsage("m-2", 270, 6, unpriced=2)
    assert read_usage(path, "s") == SessionUsage("m")
    assert read_usage(path, "nobody") == SessionUsage()


@pytest.mark.parametrize(
    ("told", "cost"),
    [
        ({"estimated_cost_usd": 0.25, "cost_status": "estimated"}, 0.25),
        ({"estimated_cost_usd": 0.25, "actual_cost_usd": 0.5, "cost_status": "actual"}, 0.5),
        ({"estimated_cost_usd": 0.0, "cost_status": "included"}, 0.0),
        ({"cost_status": "unknown", "cost_source": "none"}, -1.0),
    ],
)
def test_what_a_turn_cost_is_what_hermes_counted_meanwhile(path, told, cost):
    """A turn has the growth of its session's cost; calls whose price Hermes lacks give none."""
    meter = UsageMeter(path)
    _spend(path, {"estimated_cost_usd": 1.0, "cost_status": "estimated", "model": "m-5"})
    meter.begins("s", "hello", "")
    _spend(path, told)
    assert meter.turn("s", "hello") == TurnUsage("m-4", 7, 1, cost=cost)


def _spend(path: Path, told: dict[str, Any]) -> None:
    """Let Hermes count a call of a model."""
    call = {"input_tokens": 7, "output_tokens": 1, "model": "m-4", "api_call_count": 1, **told}
    story = (
        "import json, sys; from pathlib import Path; from hermes_state import SessionDB\n"
        "db = SessionDB(Path(sys.argv[1]))\n"
        "db.update_token_counts('s', billing_provider='p', **json.loads(sys.argv[2])); db.close()"
    )
    _run_hermes(path, story, json.dumps(call))


def test_the_tests_own_schema_is_hermes_schema(path, tmp_path):
    """Every column of the tests' state.db is one of Hermes's, which may be newer."""
    with hermes_state.HermesState(tmp_path / "ours") as ours:
        for table in ("sessions", "messages", "session_model_usage", "schema_version"):
            mine = {row[1:4] for row in ours.db.execute(f"pragma table_info({table})")}
            real = sqlite3.connect(path)
            theirs = {row[1:4] for row in real.execute(f"pragma table_info({table})")}
            (version,) = real.execute("select max(version) from schema_version").fetchone()
            real.close()
            upper = {(name, kind.upper(), bool(need)) for name, kind, need in mine}
            assert upper <= {(name, kind.upper(), bool(need)) for name, kind, need in theirs}
            assert version >= WRITTEN_FOR == hermes_state.VERSION


def test_every_message_is_read_once(path):
    """Nothing is read twice or left out: of SQLite's rows only the five carried over are copies."""
    with StateDb(path) as db:
        rows = sum(1 for session in db.sessions() for _ in db.rows(session.id))
        assert rows == db.message_count() - 5
