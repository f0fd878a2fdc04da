"""Which words are in which events, whatever their spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import (
    ContextCompressing,
    MemoryWritten,
    SessionStarted,
    ToolCalled,
    TurnCompleted,
    UnknownEvent,
)
from memorybus_console.operations.events.search import SearchWords, texts_of

TURN = TurnCompleted(
    user="Where is my\n  Blue Bicycle?",
    assistant="In the garage, behind the Straße map",
    messages=({"role": "tool", "content": [{"text": "found ｂｉｋｅ №7"}]},),
)


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ((), True),
        (("", "  "), True),
        (("BICYCLE",), True),
        (("blue bicycle",), True),
        (("bicycle blue",), False),
        (("bicycle", "blue"), True),
        (("bicycle", "strasse"), True),
        (("bike",), True),
        (("cycl",), True),
        (("lorry",), False),
        (("bicycle", "lorry"), False),
    ],
)
def test_an_event_is_found_by_all_its_words(words, there):
    """Each word or phrase has to be there; case, width and the kind of blanks do not matter."""
    assert SearchWords(words).are_in(TURN) is there


@pytest.mark.parametrize("name", ["TurnCompleted", "role", "tool", "assistant", "content"])
def test_names_of_fields_are_no_words(name):
    """What nobody said is not found: tags, names of fields, roles of messages."""
    assert not SearchWords([name]).are_in(TURN)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (MemoryWritten(action="add", content="likes tea"), "likes tea"),
        (ContextCompressing(messages=({"role": "user", "content": "deep"},)), "deep"),
        (ToolCalled(provider="p", tool="t", arguments={"a": {"b": ["deeper"]}}), "deeper"),
        (SessionStarted(details={"chat_id": "c-17"}), "c-17"),
        (UnknownEvent(name="Dreamt", wire_version=9, raw=b"\x81of sheep"), "of sheep"),
    ],
)
def test_every_kind_of_event_has_texts(event, said):
    """Words are found wherever an event holds a text, also in one that this release cannot read."""
    assert SearchWords([said]).are_in(event)


def test_what_is_shown_begins_near_the_word():
    """Of a long text a reader sees the part that was found."""
    turn = TurnCompleted(user="x " * 500 + "sea glass on the beach", assistant="ok")
    shown = SearchWords(["glass"]).excerpt(turn)
    assert shown.startswith("…")
    assert shown.index("glass") < 40
    assert SearchWords([]).excerpt(turn) == ""


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_found_by_itself(before, said):
    """Whatever characters a text holds, it is found by all of itself, and no text breaks it."""
    event = TurnCompleted(user=f"{before} {said}")
    assert SearchWords([said]).are_in(event)
    assert SearchWords([f"{before} {said}"]).are_in(event)
    SearchWords([said]).excerpt(event)
    assert list(texts_of(event))
