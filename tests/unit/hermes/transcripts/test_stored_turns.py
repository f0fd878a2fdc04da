"""What counts as a turn in Hermes's state.db, and what is only a copy of one."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_state import BELOW, PRIOR, SUMMARY, HermesState
from hypothesis import given
from hypothesis import strategies as st
from memorybus.text.cleaning import clean_messages
from memorybus_hermes.plugin.undone import read_taken_back
from memorybus_hermes.reconcile.history_index import HistoryIndex
from memorybus_hermes.reconcile.survey import without_copies
from memorybus_hermes.transcripts.state_db import (
    StateDb,
    StateDbError,
    StoredMessage,
    read_usage,
)
from memorybus_hermes.transcripts.stored_turns import StoredTurn, read_turns

ROOM = 1 << 20


@pytest.fixture(name="state")
def _state(tmp_path: Path) -> HermesState:
    """Return an empty state.db with a session ``s``."""
    state = HermesState(tmp_path)
    state.session("s")
    return state


def turns(state: HermesState, session: str = "s", room: int = ROOM) -> list[StoredTurn]:
    """Return the answered turns of a session, copies included."""
    with StateDb(state.path) as db:
        return [item for item in read_turns(db.rows(session), room) if isinstance(item, StoredTurn)]


Step = tuple[Any, ...]
"""Role and content of a stored message, and its other columns."""


def store(state: HermesState, *messages: Step) -> None:
    """Store messages as Hermes does."""
    for role, content, *more in messages:
        state.say("s", role, content, **(more[0] if more else {}))


def texts(found: list[StoredTurn]) -> list[tuple[str, str]]:
    """Return what was said and answered."""
    return [(turn.user, turn.assistant) for turn in found]


def told(state: HermesState, *sessions: str) -> list[tuple[str, str]]:
    """Return the original turns of sessions of one family, in order."""
    found: list[StoredTurn] = []
    with StateDb(state.path) as db, HistoryIndex() as known:
        for number, session in enumerate(sessions):
            found += without_copies(
                read_turns(db.rows(session), ROOM),
                lambda turn: known.first_seen("f", turn.user, turn.assistant),
                continued=number > 0,
            )
    return texts(found)


def test_a_turn_ends_with_its_last_answer(state):
    """A turn with tools is one turn: the person's words, the last answer, all its messages."""
    state.tool_turn("s", "What is here?", "One file.")
    (turn,) = turns(state)
    assert (turn.user, turn.assistant) == ("What is here?", "One file.")
    assert [message["role"] for message in turn.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert turn.at == int(state.now * 1000)


SKILL = "[IMPORTANT: The user has invoked the x skill. The full skill content is loaded below.]\n"
ASKED = "The user has provided the following instruction alongside the skill invocation: "
PARTS = [
    {"type": "text", "text": "Look"},
    {"type": "image_url", "image_url": {"url": "data:x"}},
    {"type": "text", "text": "here"},
]
IMAGES = "look at this ship\n[screenshot]\n[screenshot]"
LATER = "Your request was not processed. Send it again if you still want me to carry it out."
NO_TURNS: dict[str, list[Step]] = {
    "no answer": [("user", "never answered")],
    "an empty answer": [("user", "empty"), ("assistant", "(empty)")],
    "an interruption": [("user", "stopped"), ("assistant", "Operation interrupted.")],
    "an interruption with its reason": [
        ("user", "stopped"),
        ("assistant", "Operation interrupted: waiting for model response (2s elapsed)."),
    ],
    "a failure that Hermes tells": [("user", "failed"), ("assistant", LATER)],
    "an answer to nothing": [("user", ""), ("assistant", "an answer to nothing")],
    "observed chatter of a group": [("user", "chatter", {"observed": 1})],
    "a bare call of a skill": [("user", SKILL + "body"), ("assistant", "done")],
}


@pytest.mark.parametrize("what", NO_TURNS)
def test_what_hermes_would_not_hand_over_is_no_turn(what, state):
    """What nobody said to the agent, or Hermes did not answer, is not imported."""
    store(state, *NO_TURNS[what])
    state.turn("s", "real", "yes")
    state.say("s", "user", "still at work")
    state.say("s", "assistant", "Looking.", tool_calls='[{"id": "c"}]')
    assert texts(turns(state)) == [("real", "yes")]


def test_what_was_taken_back_is_left_out(state):
    """An undone turn is not imported: who took it back does not want it remembered."""
    state.turn("s", "kept", "yes")
    undone = state.say("s", "user", "oops")
    state.say("s", "assistant", "done")
    state.undo("s", undone)
    state.turn("s", "better", "yes")
    assert texts(turns(state)) == [("kept", "yes"), ("better", "yes")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PARTS, "[1 image] Look\nhere"),
        (f"{SKILL}body\n{ASKED}Sort my mail", "Sort my mail"),
        (IMAGES, "[2 images] look at this ship"),
    ],
    ids=["parts", "scaffolding of a skill", "lines for pictures"],
)
def test_a_turn_has_the_words_that_hermes_hands_over(content, said, state):
    """What Hermes stores around the person's words is taken off as its hooks do it."""
    state.turn("s", content, "done")
    assert texts(turns(state)) == [(said, "done")]
    state.undo("s", 1)
    [taken] = read_taken_back(state.path.parent, "s") or []
    assert taken.words == said


def test_recalled_text_is_never_imported(state):
    """A fence of recall within a stored text does not come back as if somebody had said it."""
    fenced = "Hello <memory-context>\nsecret recall\n</memory-context> there"
    state.turn("s", fenced, "hi")
    (turn,) = turns(state)
    assert "secret recall" not in turn.user + str(clean_messages(turn.messages))


def test_a_compression_in_place_does_not_double_turns(state):
    """Rows that a compression stored anew under the same id are copies, whatever it kept."""
    for number in range(6):
        state.turn("s", f"q{number}", f"a{number}")
    head = [("user", "q0"), ("assistant", "a0"), ("user", "q1")]
    tail = [("user", "q5"), ("assistant", "a5")]
    state.compact("s", [*head, ("assistant", SUMMARY), *tail])
    state.turn("s", "q6", "a6")
    state.compact(
        "s", [("user", SUMMARY), ("assistant", "a5"), ("user", "q6"), ("assistant", "a6")]
    )
    state.turn("s", "q7", "a7")
    assert told(state, "s") == [(f"q{n}", f"a{n}") for n in range(8)]


@pytest.mark.parametrize(
    ("before", "window"),
    [
        ([("user", "q1")], [("user", SUMMARY), ("assistant", "a0"), ("user", "q1")]),
        ([], [("user", f"{PRIOR}\nq1\n\n{BELOW}\n\n{SUMMARY}\nall of it")]),
    ],
    ids=["beside the summary", "merged with it"],
)
def test_a_turn_begun_before_a_compression_is_found_after_it(before, window, state):
    """A compression in the middle of a turn keeps its question, and the turn is one."""
    state.turn("s", "q0", "a0")
    store(state, *before)
    state.compact("s", window)
    state.say("s", "assistant", "a1")
    assert told(state, "s") == [("q0", "a0"), ("q1", "a1")]


def test_a_branch_does_not_double_its_beginning(state):
    """A branch's copies are its parent's turns; what follows is its own."""
    state.turn("s", "q0", "a0")
    state.turn("s", "q1", "a1")
    state.session("b", parent="s")
    state.store("b", [("user", "q0"), ("assistant", "a0"), ("user", "q1"), ("assistant", "a1")])
    state.turn("b", "q2", "a2")
    assert told(state, "s", "b") == [("q0", "a0"), ("q1", "a1"), ("q2", "a2")]


@pytest.mark.parametrize("repeated", [["thanks", "q", "thanks"], ["tick"] * 100])
def test_the_same_said_twice_is_two_turns(repeated, state):
    """Outside of copies a repeated turn counts, however many are held back for a summary."""
    for text in repeated:
        state.turn("s", text, "welcome")
    assert sorted(told(state, "s")) == [(text, "welcome") for text in sorted(repeated)]


@given(st.text(max_size=200), st.text(max_size=200))
def test_hostile_text_is_read(user, answer):
    """Whatever was said, reading it raises nothing and gives at most that one turn."""
    rows = [StoredMessage(1, "user", user, 1), StoredMessage(2, "assistant", answer, 2)]
    found = [one for one in read_turns(rows, ROOM) if isinstance(one, StoredTurn)]
    assert len(found) <= 1


def test_a_huge_turn_comes_without_its_messages(state):
    """Messages that no event can carry are left out, and the turn says so (G10)."""
    state.say("s", "user", "q")
    for _ in range(400):
        state.say("s", "tool", "x" * 1_000)
    state.say("s", "assistant", "a")
    (turn,) = turns(state, room=20_000)
    assert (turn.user, turn.assistant, turn.messages, turn.trimmed) == ("q", "a", (), True)


def test_a_missing_file_is_told(tmp_path):
    """Without a state.db the error names the file."""
    with pytest.raises(StateDbError, match="no such file"):
        StateDb(tmp_path / "state.db")


def test_a_damaged_file_is_told(tmp_path):
    """A file that is no database is an error that says so, and stays as it is."""
    path = tmp_path / "state.db"
    path.write_bytes(b"SQLite format 3\x00" + b"garbage" * 1000)
    before = path.read_bytes()
    with pytest.raises(StateDbError, match=r"state\.db: .*Hermes repairs"):
        StateDb(path)
    assert path.read_bytes() == before


def test_an_older_schema_is_told_by_its_version(tmp_path):
    """A state.db of an older Hermes is refused with its version and what to do."""
    with HermesState(tmp_path) as state:
        state.db.executescript(
            "alter table messages drop column compacted; update schema_version set version = 17;"
        )
    with pytest.raises(StateDbError, match=r"version 17 has no messages\.compacted.*start Hermes"):
        StateDb(tmp_path / "state.db")


def test_it_is_read_while_hermes_writes(state):
    """A Hermes that runs meanwhile is neither blocked nor waited for (WAL, read only)."""
    state.turn("s", "q0", "a0")
    with StateDb(state.path) as db:
        rows = db.rows("s")
        first = next(rows)
        state.turn("s", "q1", "a1")
        assert (first.content, [row.content for row in rows]) == ("q0", ["a0"])
        busy, _, _ = state.db.execute("pragma wal_checkpoint(truncate)").fetchone()
        assert busy == 0


_KILLED = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("pragma cache_size = 1")
db.execute("begin immediate")
db.execute("update messages set content = 'half ' || content")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow(reason="starts a process")
def test_it_is_read_after_a_killed_write(state):
    """Without WAL a killed Hermes leaves a journal: what it had not committed is not there."""
    state.db.execute("pragma journal_mode = delete")
    for number in range(100):
        state.turn("s", f"q{number}", "a" * 4_000)
    subprocess.run([sys.executable, "-c", _KILLED, state.path], check=False)
    assert state.path.with_name("state.db-journal").stat().st_size
    assert [turn.user for turn in turns(state)] == [f"q{number}" for number in range(100)]


def test_a_hook_reads_what_a_commit_hides_for_a_moment(state):
    """Without WAL each commit locks readers out: the count and the undo are read after it."""
    state.db.execute("pragma journal_mode = delete")
    state.undo("s", state.say("s", "user", "taken back"))
    for read in (
        lambda: read_usage(state.path, "s"),
        lambda: read_taken_back(state.path.parent, "s"),
    ):
        state.db.execute("begin exclusive")
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(read)
            wait([reading], timeout=0.02)
            state.db.execute("rollback")
            assert reading.result() is not None
