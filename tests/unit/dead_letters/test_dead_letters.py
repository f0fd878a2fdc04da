"""Dead letters without Redis: bounds, error groups, edits."""

import msgspec
import pytest
from helpers.stories.samples import SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from memorybus.dead_letters.records import (
    Amendment,
    DeadLetter,
    apply_amendment,
    edit_event,
    group_of,
    normalise_reason,
)
from memorybus.errors import InvalidEvent
from memorybus.events import MemoryWritten, TurnCompleted, UnknownEvent
from memorybus.text.redact import REASON_CHARS, TRACE_CHARS, mask_trace_tail, one_line

NAMES = [type(event).__name__ for event in SAMPLES]


@given(st.text(st.characters()))
def test_any_text_fits_a_record(text):
    """G6, G10: whatever a provider says can be written down, bounded, surrogates and all."""
    assert len(one_line(text * 300).encode()) <= 4 * REASON_CHARS
    assert "\n" not in one_line(text)
    assert len(mask_trace_tail(text * 3000)) <= TRACE_CHARS
    msgspec.json.encode((one_line(text), mask_trace_tail(text)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("key 'a7' is taken", "key 'zz top' is taken"),
        ("timeout after 30s at 10.0.0.7:5432", "timeout after 5s at 10.0.1.9:5432"),
        ("no row 0198f2c4-a1b2", "no row 77"),
        ("can't open 'a'", "can't open 'b'"),
        ('bad "quoted" text', 'bad "other" text'),
    ],
)
def test_what_fails_alike_is_one_group(one, other):
    """G6: reasons that differ only in what names one event are one error group."""
    assert normalise_reason(one) == normalise_reason(other)
    assert group_of("p", one) == group_of("p", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("connection refused", "connection reset"), ("it's bad", "it's worse"), ("a", "")],
)
def test_what_fails_differently_is_not(one, other):
    """G6: other reasons, and other providers, are other groups."""
    assert group_of("p", one) != group_of("p", other)
    assert group_of("p", one) != group_of("q", one)


@pytest.mark.parametrize("event", SAMPLES, ids=NAMES)
def test_every_event_can_be_edited(event):
    """G6: the fields that JSON shows make the same event again."""
    fields = msgspec.json.decode(msgspec.json.encode(event))
    assert edit_event(event, fields) == event


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"usr": "x"}, "no field 'usr'"),
        ({"user": 3}, "not a TurnCompleted"),
        ({"type": "MemoryWritten"}, "not a TurnCompleted"),
        ({"user": "\ud800"}, "not a TurnCompleted"),
    ],
)
def test_an_edit_keeps_to_its_type(fields, said):
    """G6: an unknown field, a wrong value, another type and a lone surrogate are refused."""
    with pytest.raises(InvalidEvent, match=said):
        edit_event(TurnCompleted(user="a"), fields)


def test_what_is_demanded_must_be_there():
    """G6: an edit that leaves out a field without a default is refused."""
    with pytest.raises(InvalidEvent, match="action"):
        edit_event(MemoryWritten(action="add"), {"content": "x"})


def test_an_unknown_event_cannot_be_edited():
    """G6: nobody knows what fits an event of a later release."""
    with pytest.raises(InvalidEvent, match="does not know"):
        edit_event(UnknownEvent(name="Dreamt", wire_version=2, raw=b""), {})


def test_an_edit_alone_changes_no_record():
    """G6: an edited letter says how it was refused until it is tried again."""
    letter = DeadLetter("e", "1-1", 1, "k", "T", "why", attempts=3, first_at=10, last_at=20)
    assert apply_amendment(letter, Amendment(edited={"user": "x"}, request="r")) == letter
    again = apply_amendment(
        letter, Amendment(reason="why not", attempts=4, first_at=10, last_at=30)
    )
    assert (again.reason, again.attempts, again.first_at, again.last_at) == ("why not", 4, 10, 30)
