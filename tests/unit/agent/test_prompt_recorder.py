"""Prompts are recorded after their turns, in bounds, and never at the cost of a turn."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memorybus.agent import session_store
from memorybus.agent.client import MemoryBus
from memorybus.agent.prompt_recorder import MAX_PENDING_PROMPTS, MAX_PENDING_SESSIONS
from memorybus.agent.session_store import HostSessions
from memorybus.agent.system_prompts import new_sections
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, SpoolError, SpoolFull
from memorybus.events import Recalled, Scope, SessionRef
from memorybus.recall.answers import Answer
from memorybus.recall.shown import shown_block
from memorybus.redis.keys import recall_slot

BLOCK = "From one:\n- tea"


@pytest.fixture(name="bus")
def _bus(tmp_path, monkeypatch):
    """Return a bus without a Redis, whose recalls always have an answer."""
    gone = Settings(data_dir=tmp_path, url=f"unix://{tmp_path}/gone.sock")
    with MemoryBus.connect(gone) as bus:
        answer = Answer({"one": ("- tea",)})
        monkeypatch.setattr(bus.recalls, "answer", lambda *_: answer)
        yield bus


@pytest.fixture(name="published")
def _published(bus, monkeypatch):
    """Return the events that the bus publishes from now on."""
    events: list[Any] = []
    publish = bus.publisher.publish

    def note(event, **given):
        events.append(event)
        return publish(event, **given)

    monkeypatch.setattr(bus.publisher, "publish", note)
    return events


def records(published):
    """Return the turns and blocks of the records among published events."""
    found = [event for event in published if isinstance(event, Recalled)]
    return [(event.turn, shown_block(event)) for event in found]


def test_a_record_names_its_turn_after_a_compression(bus, published):
    """A compression within the turn does not part a prompt from its turn."""
    session = bus.session("s", warm=False)
    block = session.prefetch("Where is the tea?")
    turn = session.compressed("s-2").turn_completed("Where is the tea?", "There.")
    assert records(published) == [(turn.event_id, block)]


def test_a_record_names_the_turn_of_its_own_branch(bus, published):
    """Branches have one order key; the prompt of one is never shown as that of the other's turn."""
    session = bus.session("s", warm=False)
    branch = session.branch("b")
    for talk, block in ((session, BLOCK), (branch, f"{BLOCK} in the branch")):
        talk.recalled_lines("Where is the tea?")
        talk.shown(block)
    turn = session.turn_completed("Where is the tea?", "There.")
    assert dict(records(published))[turn.event_id] == BLOCK


def test_a_child_records_nothing_of_its_parent(bus, tmp_path):
    """A forked process records only the prompts that it was asked for itself."""
    bus.session("s", warm=False).prefetch("Where is the tea?")
    pid = os.fork()
    if not pid:
        tmp_path.joinpath("pending").write_text(str(len(bus.prompts.pending)))
        os._exit(0)
    os.waitpid(pid, 0)
    assert tmp_path.joinpath("pending").read_text() == "0"
    assert bus.prompts.pending


def test_a_turn_is_accepted_though_a_host_shows_no_text(bus, published):
    """What is no text is returned as it is, and has no record."""
    session = bus.session("s", warm=False)
    session.recalled_lines("Where is the tea?")
    assert session.shown(7) == 7
    assert session.turn_completed("Where is the tea?", "There.").event_id
    assert records(published) == []


def test_what_is_pending_is_bounded(bus, published):
    """G10: of the oldest sessions, and the oldest prompts of one, nothing more is kept."""
    for number in range(MAX_PENDING_SESSIONS + 3):
        session = bus.session(f"s{number}", warm=False)
        session.recalled_lines("Where is the tea?")
        session.shown(BLOCK)
    assert len(bus.prompts.pending) == MAX_PENDING_SESSIONS
    assert records(published) == [("", BLOCK)] * 3
    for _ in range(MAX_PENDING_PROMPTS + 3):
        session.prefetch("Where is the tea?")
    assert len(bus.prompts.pending[session.key]) == MAX_PENDING_PROMPTS
    bus.prompts.record_all()
    assert len(records(published)) == MAX_PENDING_SESSIONS + MAX_PENDING_PROMPTS + 2


def test_a_turn_is_accepted_though_its_prompt_cannot_be_recorded(bus, monkeypatch):
    """G9: a spool that has no room for the record costs the record alone."""
    session = bus.session("s", warm=False)
    session.prefetch("Where is the tea?")
    publish = bus.publisher.publish

    def refuse(event, **given):
        if isinstance(event, Recalled):
            raise SpoolFull("full")
        return publish(event, **given)

    monkeypatch.setattr(bus.publisher, "publish", refuse)
    assert session.turn_completed("Where is the tea?", "There.").event_id
    assert not bus.prompts.pending


def test_what_was_not_recalled_is_not_recorded(bus, published):
    """A text that a host shows without a recall before it has no record."""
    session = bus.session("s", warm=False)
    assert session.shown(BLOCK) == BLOCK
    session.prefetch("Where is the tea?")
    session.prefetch("ok")
    session.turn_completed("ok", "Yes?")
    assert [turn for turn, _ in records(published)] == [""]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_0_and_1(share):
    """Another share of recorded prompts is a wrong setting, and the message names it."""
    with pytest.raises(ConfigError, match="recorded_prompts"):
        Settings(recorded_prompts=share)


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


STORE = ("  MEMORY [1% of 9]", "  Speaks Polish", "  Likes tea")

CASES = [
    ([("one", STORE), ("two", ("  - Likes tea", "  - Rows"))], "", [3, 1]),
    ([("one", STORE), ("two", ("  - Likes tea",))], "", [3]),
    ([("one", STORE), ("two", STORE)], "", [3, 3]),
    ([("one", STORE)], "MEMORY\nSpeaks Polish\nLikes tea", []),
    ([("one", ("  - Likes tea",))], "Likes tea", []),
]


@pytest.mark.parametrize(("sections", "known", "left"), CASES)
def test_what_was_said_before_is_left_out(sections, known, left):
    """An item that an earlier provider or the prompt itself has is not said again."""
    assert [len(lines) for _, lines in new_sections(sections, known)] == left
