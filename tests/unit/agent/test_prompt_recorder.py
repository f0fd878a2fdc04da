"""Prompts are recorded after their turns, in bounds, and never at the cost of a turn."""

import os
from typing import Any

import pytest
from memorybus.agent.client import MemoryBus
from memorybus.agent.prompt_recorder import MAX_PENDING_PROMPTS, MAX_PENDING_SESSIONS
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, SpoolFull
from memorybus.events import Recalled
from memorybus.recall.answers import Answer
from memorybus.recall.shown import shown_block

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
