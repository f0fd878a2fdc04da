"""What a host notes of its sessions' system prompts: bounded in number and time."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from memorybus.agent import session_store
from memorybus.agent.session_store import HostSessions
from memorybus.errors import SpoolError
from memorybus.events import Scope, SessionRef
from memorybus.redis.keys import recall_slot

ANN, BOB = Scope(user="ann"), Scope(user="bob")


@pytest.fixture(name="notes")
def _notes(tmp_path: Path) -> Iterator[HostSessions]:
    notes = HostSessions(tmp_path / "sessions.db")
    yield notes
    notes.close()


def test_the_first_text_counts(notes, tmp_path):
    """What was kept first stays, in this process and in another, for that owner's lineage alone."""
    assert notes.prompt(ANN, "s", 1) is None
    assert notes.keep_prompt(ANN, "s", "first", 1) == "first"
    assert notes.keep_prompt(ANN, "s", "second", 2) == "first"
    other = HostSessions(tmp_path / "sessions.db")
    assert other.prompt(ANN, "s", 3) == "first"
    assert other.keep_prompt(BOB, "s", "", 3) == ""
    other.close()
    assert notes.prompt(BOB, "s", 4) == ""
    assert notes.prompt(ANN, "t", 4) is None


def test_those_used_last_are_kept(notes, monkeypatch):
    """G10: beyond the bound the one unused longest goes, and each after a month without use."""
    monkeypatch.setattr(session_store, "_MAX_PROMPTS", 3)
    for at, root in enumerate("abc"):
        notes.keep_prompt(ANN, root, root, at)
    assert notes.prompt(ANN, "a", 10) == "a"
    notes.keep_prompt(ANN, "d", "d", 11)
    assert [notes.prompt(ANN, root, 12) for root in "abcd"] == ["a", None, "c", "d"]
    notes.keep_prompt(ANN, "e", "e", 13 + 30 * 86_400_000)
    assert [notes.prompt(ANN, root, 14) for root in "acde"] == [None, None, None, "e"]


def test_a_file_that_cannot_be_written_is_said(notes):
    """A full disk is an error of the spool's kind, which the caller may live with (G9)."""
    notes._db.execute("pragma query_only = on")
    with pytest.raises(SpoolError, match="readonly"):
        notes.keep_prompt(ANN, "s", "text", 1)


def test_what_is_forgotten_is_not_in_the_file(notes, tmp_path):
    """All prompts and the turns of a forgotten session go, bytes too; the rest stays."""
    for scope in (ANN, BOB):
        notes.put(scope, SessionRef("s", "root"))
        notes.keep_prompt(scope, "root", f"a wolpertinger of {scope.user}", 1)
        notes.keep_turns(recall_slot(scope, "s"), b"turns of " + scope.user.encode(), 1, 9)
    notes.forget([(ANN, "s")])
    assert (notes.prompt(ANN, "root", 2), notes.prompt(BOB, "root", 2)) == (None, None)
    assert notes.turns(recall_slot(ANN, "s")) == b""
    assert notes.turns(recall_slot(BOB, "s")) == b"turns of bob"
    assert notes.get(ANN, "s") == notes.get(BOB, "s") == SessionRef("s", "root")
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"turns of bob" in left
    assert b"wolpertinger" not in left
    assert b"turns of ann" not in left


def test_an_agent_opens_the_file_that_another_one_is_opening(tmp_path, monkeypatch):
    """Of two agents that start at once neither fails, though SQLite refuses one the lock."""
    path = tmp_path / "sessions.db"
    HostSessions(path).close()
    connect = sqlite3.connect
    with closing(connect(path, isolation_level=None)) as other:
        other.execute("pragma journal_mode = delete")
        other.execute("begin")
        other.execute("select count(*) from sqlite_master").fetchone()
        monkeypatch.setattr(
            session_store.sqlite3,
            "connect",
            lambda place, **options: connect(place, **(options | {"timeout": 0})),
        )
        HostSessions(path).close()
