"""Items of the OpenAI Responses API as messages of a turn, and back."""

import pytest
from memorybus.events import TurnCompleted
from memorybus.text.cleaning import clean_messages
from memorybus_frameworks import openai_items

PROMPT = {"role": "user", "content": "How long is it?"}
CALL = {"type": "function_call", "call_id": "c-1", "name": "measure", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c-1", "output": "three metres"}
THOUGHT = {"type": "reasoning", "id": "r-1", "summary": [], "encrypted_content": "opaque"}
ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Three metres."}],
}
APPROVAL = {"type": "mcp_approval_request", "id": "a-1"}
TURN = [PROMPT, THOUGHT, CALL, OUTPUT, ANSWER]


def test_items_come_back_as_they_were():
    """A turn's messages are those of a chat, and its items are the same as before."""
    messages = clean_messages([openai_items.message_of(item) for item in TURN])
    roles = [message.get("role") for message in messages]
    assert roles == ["user", None, "assistant", "tool", "assistant"]
    assert openai_items.items_of(TurnCompleted(messages=messages)) == TURN


@pytest.mark.parametrize(
    "messages",
    [(), ({"role": "tool", "content": "x"},), ({"role": "assistant", "tool_calls": []},)],
)
def test_another_agents_turn_has_its_words(messages):
    """The API does not take another kind of agent's messages: its words come as plain messages."""
    turn = TurnCompleted(user="Hi", assistant="Hello.", messages=messages)
    assert openai_items.items_of(turn) == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
    ]


@pytest.mark.parametrize(
    ("items", "complete"),
    [
        ([PROMPT], False),
        ([PROMPT, CALL, OUTPUT], False),
        ([PROMPT, ANSWER, CALL, OUTPUT], False),
        (TURN, True),
        ([PROMPT, CALL], True),
        ([PROMPT, APPROVAL], True),
    ],
)
def test_a_turn_is_complete_when_it_was_answered_or_waits(items, complete):
    """A turn is complete if it ends with an answer, or if a person has to approve a call."""
    assert openai_items.is_complete(items) is complete


@pytest.mark.parametrize(
    ("items", "left"),
    [
        (TURN, TURN),
        ([PROMPT, OUTPUT, ANSWER], [PROMPT, ANSWER]),
        ([PROMPT, CALL], [PROMPT, CALL]),
        (
            [PROMPT, {"type": "local_shell_call_output"}],
            [PROMPT, {"type": "local_shell_call_output"}],
        ),
    ],
)
def test_an_output_without_its_call_is_left_out(items, left):
    """The API refuses a conversation with an output whose call is missing."""
    assert openai_items.without_orphans(items) == left


def test_a_list_of_several_turns_is_split():
    """A turn begins with what the person said, however many messages that are."""
    turns = [[PROMPT, PROMPT, ANSWER], [PROMPT, CALL, OUTPUT, ANSWER], [PROMPT]]
    assert list(openai_items.split_turns(sum(turns, []))) == turns  # noqa: RUF017  short
