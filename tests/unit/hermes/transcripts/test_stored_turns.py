"""What counts as a turn in Hermes's state.db, and what is only a copy of one."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

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


def test_unanswered_and_interrupted_turns_are_none(state):
    """What Hermes would not hand over is no turn: no answer, an empty one, an interruption."""
    state.say("s", "user", "never answered")
    state.turn("s", "empty", "(empty)")
    state.turn("s", "interrupted", "Operation interrupted.")
    state.turn("s", "", "an answer to nothing")
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


def test_what_others_said_in_a_group_is_no_turn(state):
    """Observed messages of a group are nobody's question to the agent."""
    state.say("s", "user", "chatter", observed=1)
    state.turn("s", "hello", "hi")
    assert texts(turns(state)) == [("hello", "hi")]


def test_parts_are_flattened_as_hermes_does(state):
    """A message of parts becomes the text that Hermes hands to memory."""
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "data:x"}},
        {"type": "text", "text": "here"},
    ]
    state.turn("s", parts, "a ship")
    assert texts(turns(state)) == [("[1 image] Look\nhere", "a ship")]


def test_skill_scaffolding_is_taken_off(state):
    """A skill's own text is nothing that the person said; a bare call of it is no turn."""
    skill = (
        "[IMPORTANT: The user has invoked the x skill. The full skill content is loaded below.]\n"
    )
    asked = "The user has provided the following instruction alongside the skill invocation: "
    state.turn("s", skill + "body", "done")
    state.turn("s", f"{skill}body\n{asked}Sort my mail", "sorted")
    assert texts(turns(state)) == [("Sort my mail", "sorted")]


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


def test_a_turn_begun_before_a_compression_is_found_after_it(state):
    """A compression in the middle of a turn keeps its question, and the turn is one."""
    state.turn("s", "q0", "a0")
    state.say("s", "user", "q1")
    state.compact("s", [("user", SUMMARY), ("assistant", "a0"), ("user", "q1")])
    state.say("s", "assistant", "a1")
    assert told(state, "s") == [("q0", "a0"), ("q1", "a1")]


def test_a_summary_merged_into_a_question_leaves_the_question(state):
    """Where Hermes merged a summary into the last question, the question is read from it."""
    state.turn("s", "q0", "a0")
    merged = f"{PRIOR}\nq1\n\n{BELOW}\n\n{SUMMARY}\nall of it"
    state.compact("s", [("user", merged)])
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


def test_the_same_said_twice_is_two_turns(state):
    """Outside of copies a repeated turn counts: people say the same again."""
    state.turn("s", "thanks", "welcome")
    state.turn("s", "q", "a")
    state.turn("s", "thanks", "welcome")
    assert sorted(told(state, "s")) == [("q", "a"), ("thanks", "welcome"), ("thanks", "welcome")]


def test_many_repeated_turns_are_all_told(state):
    """What is held back for a summary that never comes is told in the end, and is bounded."""
    for _ in range(100):
        state.turn("s", "tick", "tock")
    assert len(told(state, "s")) == 100


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


@pytest.mark.parametrize(
    "notice",
    [
        "Operation interrupted: waiting for model response (2s elapsed).",
        "Your request was not processed. Send it again if you still want me to carry it out.",
    ],
)
def test_a_notice_of_hermes_is_no_answer(state, notice):
    """A stopped or failed turn is closed by a text of Hermes: it is no turn, as for the hooks."""
    state.turn("s", "a turn to stop", notice)
    state.turn("s", "after it", "an answer")
    assert [turn.user for turn in turns(state)] == ["after it"]


def test_pictures_are_counted_as_the_hooks_count_them(state):
    """Hermes stores a line for each picture: the turn has the words with which it was handed on."""
    state.turn("s", "look at this ship\n[screenshot]\n[screenshot]", "two ships")
    assert [turn.user for turn in turns(state)] == ["[2 images] look at this ship"]
    state.undo("s", 1)
    [taken] = read_taken_back(state.path.parent, "s") or []
    assert taken.words == "[2 images] look at this ship"
