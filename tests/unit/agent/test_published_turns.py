"""What a compression leaves out: messages that only undone turns have said."""

from memorybus.agent.undone import PublishedTurns
from memorybus.events import TurnCompleted
from memorybus.text.cleaning import clean_messages

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
