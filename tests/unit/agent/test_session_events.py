"""The events of a session, made of what an agent says."""

import pytest
from memorybus.agent.session_events import checked_time, session_details
from memorybus.agent.undone import PublishedTurns
from memorybus.errors import InvalidEvent
from memorybus.events import TurnCompleted
from memorybus.text.cleaning import clean_messages


def test_details_are_clean_and_bounded():
    """What a host tells of a session is cleaned like all text, and bounded; none is cut (G10)."""
    told = {"chat_name": "a\0b", "thread_id": "", "chat_id": "x" * 1_025, "k" * 1_025: "v"}
    assert session_details(told) == {"chat_name": "a\ufffdb"}
    assert session_details(None) == {}
    many = {f"n{number}": "v" for number in range(40)}
    assert list(session_details(many)) == list(many)[:32]


@pytest.mark.parametrize("at", [None, 0, 1_000, 10**9 - 1, 10**10, 1_767_225_600_000])
def test_a_time_in_milliseconds_is_taken(at):
    """No time is now, and small ones are as hosts without a clock tell them."""
    assert checked_time(at) == at


@pytest.mark.parametrize("at", [10**9, 1_767_225_600, 10**10 - 1])
def test_a_time_in_seconds_is_refused(at):
    """What would be a time of this age in seconds is a mistake, and is told as one (G10)."""
    with pytest.raises(InvalidEvent, match="milliseconds are wanted"):
        checked_time(at)


CALLS = [{"id": "c1", "function": {"name": "memory_add", "arguments": '{"content": "PIN 4711"}'}}]
TALK = clean_messages(
    [
        {"role": "user", "content": "keep my PIN"},
        {"role": "assistant", "content": None, "tool_calls": CALLS},
    ]
)
TURN = TurnCompleted(user="keep my PIN", assistant="Kept.", messages=TALK)


def test_an_undone_turn_that_is_published_again_stays_undone():
    """G2: the log ignores an event that comes again, so it is still taken back."""
    turns = PublishedTurns()
    turns.note("k", "e1", TURN)
    turns.undo(["e1"])
    turns.note("k", "e1", TURN)
    assert turns.standing("k", TALK) == ()


def test_calls_of_tools_are_left_out_with_their_turn():
    """A call carries what was said in its arguments, also where the message has no text."""
    turns = PublishedTurns()
    turns.note("k", "e1", TURN)
    assert turns.standing("k", TALK) == TALK
    turns.undo(["e1"])
    assert turns.standing("k", TALK) == ()
    assert turns.standing("other", TALK) == TALK
