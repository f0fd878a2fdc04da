"""`/undo` in a living plugin: which events a rewind takes back, and which ends come too late."""

from collections.abc import Iterator

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from helpers.hermes.hermes_state import HermesState
from memorybus.clock import SYSTEM
from memorybus.events import Delegated, Scope, SessionSwitched, TurnCompleted
from memorybus.redis.keys import recall_slot
from memorybus_hermes.plugin.provider import HermesMemory
from memorybus_hermes.plugin.shared import HermesProcess
from memorybus_hermes.plugin.undone import BegunTurn, TakenBack, claim_undone


@pytest.fixture(name="host")
def _host() -> Iterator[Host]:
    with hermes_host() as host:
        yield host


@pytest.fixture(name="state")
def _state(host: Host) -> Iterator[HermesState]:
    """Return the host's state.db, with the sessions that the tests talk in."""
    with HermesState(host.home, at=SYSTEM.now_ms() / 1000 - 1) as state:
        state.session("s1")
        state.now -= 1
        yield state


def said(state: HermesState, text: str) -> int:
    """Store a turn as Hermes does, now; return the number of its first message."""
    state.now = SYSTEM.now_ms() / 1000 - 1
    first = state.say("s1", "user", text)
    state.now -= 1
    state.say("s1", "assistant", text.upper())
    return first


def turn(memory: HermesMemory, state: HermesState, text: str, before: int = 0) -> int:
    """Have a turn, stored and handed over; return the number of its first message."""
    memory.on_turn_start(before, text)
    first = said(state, text)
    over(memory, text, before)
    return first


def over(memory: HermesMemory, text: str, before: int = 0) -> None:
    """Hand a turn over; so many came before it."""
    transcript = talk(*["x"] * before, text)
    memory.sync_turn(text, text.upper(), session_id="s1", messages=transcript)


def undo(memory: HermesMemory, session: str = "s1") -> None:
    """Say that something was undone, as Hermes does."""
    memory.on_session_switch(session, parent_session_id="", reset=False, rewound=True)


def turns(host: Host) -> list[tuple[str, str]]:
    """Return the ids and words of the turns that were published."""
    return [(e.id, e.event.user) for e in host.events(TurnCompleted)]


def retracted(host: Host) -> list[list[str]]:
    """Return, for each rewind, the words of the turns it takes back; an unknown id is shown."""
    words = dict(turns(host))
    switches = [e.event for e in host.events(SessionSwitched)]
    return [[words.get(one, one) for one in s.retracted] for s in switches if s.rewound]


UNDOS: dict[str, tuple[str, list[list[str]]]] = {
    "`/undo 2` takes back the two turns that state.db has as taken back": (
        "tea, milk, wine, undone milk, /undo",
        [["milk", "wine"]],
    ),
    "a rewind that is delivered again takes nothing more back": (
        "tea, milk, undone milk, /undo, /undo",
        [["milk"], []],
    ),
    "an undo in a branch leaves the trunk's turns, which were copied into it": (
        "tea, branch, /undo in s2",
        [[]],
    ),
    "a gateway drops its agent without a word: the next one takes back what was undone": (
        "tea, milk, again, undone milk, again, again",
        [["milk"]],
    ),
}
"""Turns, what Hermes does of an undo, and which words each rewind takes back."""


@pytest.mark.parametrize("course", UNDOS)
def test_an_undo_takes_back_what_hermes_has_taken_back(course, host, state):
    """The event names the turns of the session itself, each once."""
    memory, first = host.instance("s1"), dict[str, int]()
    steps, expected = UNDOS[course]
    for step in steps.split(", "):
        match step.split():
            case ["undone", text]:
                state.undo("s1", first[text])
            case ["/undo", *where]:
                undo(memory, where[-1] if where else "s1")
            case ["branch"]:
                memory.on_session_switch("s2", parent_session_id="s1", reason="branch")
            case ["again"]:
                host.instance("s1")
            case [text]:
                first[text] = turn(memory, state, text)
    assert retracted(host) == expected


def test_without_a_state_db_the_last_turn_is_taken_back(host):
    """Where Hermes stores nothing, an undo is that of the last turn, and of the one before it."""
    memory = host.instance("s1")
    for text in ("tea", "milk"):
        memory.on_turn_start(0, text)
        over(memory, text)
    for _ in range(3):
        undo(memory)
    assert retracted(host) == [["milk"], ["tea"], []]


def test_the_same_words_are_taken_back_once(host, state):
    """Of the same words said three times only the turn that was undone is taken back."""
    memory = host.instance("s1")
    turn(memory, state, "ok")
    state.undo("s1", turn(memory, state, "ok", 1))
    undo(memory)
    again = turn(memory, state, "ok", 1)
    ids = [event_id for event_id, _ in turns(host)]
    state.undo("s1", again)
    undo(memory)
    found = [e.event.retracted for e in host.events(SessionSwitched)]
    assert found == [(ids[1],), (ids[2],)]


def test_what_a_turn_delegated_goes_with_it(host):
    """A delegation of the undone turn is taken back with it, one of an earlier turn is not."""
    memory = host.instance("s1")
    for text in ("tea", "milk"):
        memory.on_turn_start(0, text)
        memory.on_delegation(f"look up {text}", "done", child_session_id=text)
        over(memory, text)
    undo(memory)
    events = host.events(Delegated, TurnCompleted)
    (switch,) = host.events(SessionSwitched)
    assert switch.event.retracted == tuple(e.id for e in events[2:])


def test_an_undone_turn_whose_end_comes_late_is_not_remembered(host):
    """Hermes hands turns over on a thread that lags: one that was undone meanwhile is skipped."""
    memory = host.instance("s1")
    for text in ("tea", "milk"):
        memory.on_turn_start(0, text)
    undo(memory)
    over(memory, "tea")
    over(memory, "milk")
    assert [text for _, text in turns(host)] == ["tea"]
    assert retracted(host) == [[]]


def test_what_is_said_again_after_an_undo_is_remembered(host, state):
    """G1: of the same words before and after an undo, the end that stands is published."""
    memory = host.instance("s1")
    memory.on_turn_start(0, "tea")
    state.undo("s1", said(state, "tea"))
    undo(memory)
    memory.on_turn_start(0, "tea")
    state.say("s1", "user", "tea")
    memory.sync_turn("tea", "TEA", session_id="s1", messages=talk("tea"))
    assert turns(host) == [], "the end of the turn that was undone"
    state.say("s1", "assistant", "Earl Grey")
    memory.sync_turn("tea", "Earl Grey", session_id="s1", messages=talk("tea"))
    assert [e.event.assistant for e in host.events(TurnCompleted)] == ["Earl Grey"]


def test_an_interrupted_turn_that_was_undone_hides_no_later_one(host, state):
    """G1: an interrupted turn is never handed over; the same words after its undo are."""
    memory = host.instance("s1")
    memory.on_turn_start(0, "tea")
    state.undo("s1", state.say("s1", "user", "tea"))
    undo(memory)
    turn(memory, state, "tea")
    over(memory, "tea")
    assert [text for _, text in turns(host)] == ["tea"], "handed over twice: one event (G2)"


def test_a_session_resumed_in_another_process_can_be_undone(host, state):
    """What one process published the next one takes back: the host notes it (G10: bounded)."""
    memory = host.instance("s1")
    turn(memory, state, "tea")
    first = turn(memory, state, "milk")
    ids = dict(turns(host))
    with_same_notes = Host(host.settings, host.home)
    try:
        later = with_same_notes.instance("s1")
        state.undo("s1", first)
        undo(later)
        (switch,) = with_same_notes.events(SessionSwitched)
        assert [ids[one] for one in switch.event.retracted] == ["milk"]
    finally:
        with_same_notes.bus.close(0.1)


def test_the_notes_of_many_sessions_are_bounded(host):
    """G10: a host notes the turns of so many sessions; the oldest notes go, the others stay."""
    notes = host.bus.sessions
    for number in range(5):
        notes.keep_turns(f"slot{number}", b"%d" % number, at=number, most=3)
    notes.keep_turns("slot3", b"again", at=9, most=3)
    assert [notes.turns(f"slot{n}") for n in range(5)] == [b"", b"", b"2", b"again", b"4"]


def test_notes_that_cannot_be_read_say_nothing(host):
    """What another release noted is no error: an undo then takes back what this process said."""
    host.instance("s1")
    bus = host.bus
    bus.sessions.keep_turns(recall_slot(host.events()[0].scope, "s1"), b"\xc1", at=1, most=9)
    host.process = HermesProcess(lambda _: bus, host.clock)
    memory = host.instance("s1")
    over(memory, "tea")
    undo(memory)
    assert retracted(host) == [["tea"]]


def test_a_turn_goes_with_its_copy_after_a_compression(host, state):
    """A compression under a new id stores the last turn anew: undone there, it is taken back."""
    memory = host.instance("s1")
    turn(memory, state, "tea")
    state.session("s2", parent="s1")
    state.now = SYSTEM.now_ms() / 1000
    copy = state.say("s2", "user", "tea")
    memory.on_session_switch("s2", parent_session_id="s1", reason="compression")
    state.undo("s2", copy)
    memory.on_session_switch("s2", parent_session_id="", rewound=True)
    assert retracted(host) == [["tea"]]


def test_words_that_hermes_stored_otherwise_are_found_by_time():
    """Of an undo that was told, a message with other words is that of the turn at its time."""
    tea, milk = BegunTurn("tea", 1_000_000, Scope()), BegunTurn("milk", 2_000_000, Scope())
    taken = [TakenBack("the milk, please", 2_000_100, row=7)]
    assert claim_undone([tea, milk], taken, told=False) == []
    assert claim_undone([tea, milk], taken, told=True) == [milk]
    earlier = [TakenBack("tea", 900_000, row=8)]
    assert claim_undone([tea, milk], earlier, told=True) == [], "of an earlier turn"


def test_a_masked_turn_is_found_by_what_is_left_of_it(host, state):
    """Hermes masks what it hands over and stores it raw: an undo finds the turn all the same."""
    memory = host.instance("s1")
    masked = "keep my token [redacted] for the pump"
    memory.on_turn_start(0, "keep my token tok-live-9QxZ71bbK0 for the pump")
    first = said(state, "keep my token tok-live-9QxZ71bbK0 for the pump")
    over(memory, masked)
    turn(memory, state, "and the valve", 1)
    state.undo("s1", first)
    host.restart()
    host.instance("s1")
    assert retracted(host) == [[masked, "and the valve"]]
