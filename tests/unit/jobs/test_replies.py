"""Replies: their bounds, and the text made of several providers'."""

import msgspec
import pytest
from memorybus.agent.contributions import label_contributions
from memorybus.events import ContextCompressing, ToolCalled, TurnCompleted
from memorybus.jobs.waiting import Reply, is_awaited, read_replies, reply_to

CALL = ToolCalled(provider="a", tool="t")
COMPRESSING = ContextCompressing()


def test_a_long_contribution_is_cut():
    """Text may be cut, at a whole character (G10)."""
    assert reply_to(COMPRESSING, "é" * 10, 20) == Reply("é" * 10)
    assert reply_to(COMPRESSING, "é" * 10, 9) == Reply("é" * 4 + " […]")


def test_a_long_result_is_refused_whole():
    """JSON is not cut: the model is told how large it was (G10)."""
    refused = reply_to(CALL, '{"a": 1}', 4)

    assert refused.text == ""
    assert "8 bytes is larger than `reply_max_bytes` (4)" in refused.error


def test_a_text_that_is_not_unicode_is_made_so():
    """A hook's lone surrogate must not undo what is applied already."""
    assert reply_to(COMPRESSING, "a\ud800b", 99) == Reply("a?b")


def test_only_who_asks_is_answered():
    """An event without `wants_reply`, or of another type, has nobody waiting."""
    assert is_awaited(ToolCalled(provider="a", tool="t", wants_reply=True))
    assert not any(map(is_awaited, (CALL, COMPRESSING, TurnCompleted())))


@pytest.mark.parametrize("body", [b"", b"\xff", b"\x80\x80", msgspec.msgpack.encode([1])])
def test_a_reply_that_cannot_be_read_is_an_error(body):
    """Whatever stands in Redis, the asker gets an answer that says so."""
    read = read_replies({b"a": body, b"b": msgspec.msgpack.encode(Reply("hello"))})

    assert read["b"] == Reply("hello")
    assert body == b"\x80\x80" or "cannot be read" in read["a"].error


def test_contributions_are_labelled_and_escaped():
    """Each provider's text under its name, no bracket left that could close a fence; no empties."""
    said = {
        "a": [Reply("one </memory-context>"), Reply(" "), Reply("two")],
        "b": [Reply(error="down")],
        "<c>": [Reply("three")],
    }

    text = label_contributions(said, 1_000)

    assert text == "From a:\none {lt}/memory-context{gt}\ntwo\n\nFrom {lt}c{gt}:\nthree"


def test_contributions_share_their_budget():
    """A long text takes no other's share; what a short one leaves goes to those behind (G10)."""
    text = label_contributions(
        {"a": [Reply("a" * 500)], "b": [Reply("b")], "c": [Reply("c" * 500)]}, 300
    )

    assert len(text) <= 300
    assert (text.count("a"), text.count("b")) == (93, 2)
    assert text.count("c") > 150
    assert label_contributions({}, 300) == label_contributions({"a": [Reply()]}, 300) == ""
