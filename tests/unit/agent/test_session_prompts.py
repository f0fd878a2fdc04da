"""What a host notes of its sessions' system prompts: bounded in number and time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from memorybus.agent import session_store
from memorybus.agent.session_store import HostSessions
from memorybus.errors import SpoolError
from memorybus.events import Scope

ANN, BOB = Scope(user="ann"), Scope(user="bob")


@pytest.fixture(name="notes")
def _notes(tmp_path: Path) -> Iterator[HostSessions]:
    notes = HostSessions(tmp_path / "sessions.db")
    yield notes
    notes.close()


def test_the_first_text_counts(notes: HostSessions, tmp_path: Path) -> None:
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


def test_those_used_last_are_kept(notes: HostSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """G10: beyond the bound the one unused longest goes, and each after a month without use."""
    monkeypatch.setattr(session_store, "_MAX_PROMPTS", 3)
    for at, root in enumerate("abc"):
        notes.keep_prompt(ANN, root, root, at)
    assert notes.prompt(ANN, "a", 10) == "a"
    notes.keep_prompt(ANN, "d", "d", 11)
    assert [notes.prompt(ANN, root, 12) for root in "abcd"] == ["a", None, "c", "d"]
    notes.keep_prompt(ANN, "e", "e", 13 + 30 * 86_400_000)
    assert [notes.prompt(ANN, root, 14) for root in "acde"] == [None, None, None, "e"]


def test_a_file_that_cannot_be_written_is_said(notes: HostSessions) -> None:
    """A full disk is an error of the spool's kind, which the caller may live with (G9)."""
    notes._db.execute("pragma query_only = on")
    with pytest.raises(SpoolError, match="readonly"):
        notes.keep_prompt(ANN, "s", "text", 1)
