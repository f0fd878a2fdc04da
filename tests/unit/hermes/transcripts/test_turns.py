"""A turn in Hermes's transcript, and what its messages carry that nobody said."""

from collections.abc import Hashable

import msgspec
import pytest
from helpers.hermes.hermes_plugin import talk
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.text.cleaning import clean_messages
from memorybus_hermes.transcripts.carried import Carried, RowMark, follow
from memorybus_hermes.transcripts.scaffolding import is_by_host, opens_turn, user_text
from memorybus_hermes.transcripts.stored_turns import bounded_messages, clip_text, find_turn

SKILL = (
    '[IMPORTANT: The user has invoked the "plan" skill, indicating they want it. '
    "The full skill content is loaded below.]\n\nThe skill quotes: The user has provided the "
    "following instruction alongside the skill invocation: nothing\n"
)
INSTRUCTION = "The user has provided the following instruction alongside the skill invocation: "
BUNDLE = '[IMPORTANT: The user has invoked the "ops" skill bundle, with 2 skills.]'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "hello"),
        ("", ""),
        (f"{SKILL}\n{INSTRUCTION}make a plan\n\n[Runtime note: x]", "make a plan"),
        (f"{BUNDLE}\nUser instruction: ship it\n\n[Loaded as part of the ops bundle]", "ship it"),
        (BUNDLE, ""),
        ("[IMPORTANT: The user has invoked the thing", ""),
    ],
)
def test_only_what_the_person_said_is_a_turn(text, said):
    """Skill scaffolding is taken off as Hermes does it; a bare invocation says nothing."""
    assert user_text(text) == said


@pytest.mark.parametrize(
    ("message", "opens"),
    [
        ({"role": "user", "content": "hi"}, True),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, True),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, True),
        ({"role": "user", "content": "[ASYNC DELEGATION COMPLETE — d1]\nresult"}, True),
        ({"role": "user", "content": "[IMPORTANT: Background process p1 finished"}, True),
        ({"role": "user", "content": ""}, False),
        ({"role": "user", "content": "x", "_todo_snapshot_synthetic": True}, False),
        ({"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier"}, False),
        ({"role": "user", "content": "[System: Your previous tool call failed"}, False),
        ({"role": "assistant", "content": "hi"}, False),
        ({"role": "tool", "content": "hi"}, False),
    ],
)
def test_what_opens_a_turn(message, opens):
    """Notes of Hermes to the model within a turn open none; a background task's end does."""
    assert opens_turn(message) is opens


def test_a_background_task_is_not_the_person():
    """A turn that Hermes opened itself is told apart from what somebody said."""
    assert is_by_host("[ASYNC DELEGATION BATCH COMPLETE — d1]")
    assert not is_by_host("what about the [ASYNC DELEGATION COMPLETE] line?")


def test_a_turn_is_cut_out_of_the_transcript():
    """The ordinal counts the turns before; the messages are this turn's only."""
    transcript = talk("one", "two")
    transcript[3:3] = [{"role": "tool", "content": "found", "tool_call_id": "c1"}]
    turn = find_turn(transcript, "two")
    assert turn.ordinal == 1
    assert [m["role"] for m in turn.messages] == ["user", "tool", "assistant"]


def test_a_late_turn_is_found_behind_a_newer_one():
    """A transcript in which the next turn has begun still gives the turn that is meant."""
    turn = find_turn([*talk("one", "two"), {"role": "user", "content": "three"}], "two")
    assert turn.ordinal == 1
    assert [m["content"] for m in turn.messages] == ["two", "TWO"]


@pytest.mark.parametrize("transcript", [None, [], [{"role": "assistant", "content": "x"}], ["odd"]])
def test_no_turn_no_ordinal(transcript):
    """Without a user's message in it, a transcript says nothing of the turn's number."""
    assert find_turn(transcript, "hi").ordinal is None


def test_what_is_hermes_s_own_is_left_out():
    """Marks, reasoning and the bytes with the fence in them are never remembered."""
    message = {
        "role": "user",
        "content": "hi",
        "api_content": "hi <memory-context>secret</memory-context>",
        "_db_persisted": True,
        "reasoning": "hm",
        "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert bounded_messages([message], 10_000) == (
        {"role": "user", "content": "hi", "tool_calls": message["tool_calls"]},
    )


def test_images_and_endless_outputs_stay_out():
    """Data URLs are named by their size; a long text keeps its two ends (G10)."""
    url = "data:image/png;base64," + "A" * 5_000
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    first, second = bounded_messages(
        [{"role": "user", "content": parts}, {"role": "tool", "content": "x" * 200_000}], 150_000
    )
    assert first["content"][0]["image_url"]["url"] == f"[data of {len(url)} characters]"
    assert len(second["content"]) < 70_000
    assert "characters left out" in second["content"]


@settings(max_examples=50)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "_x", "api_content"]),
            st.recursive(
                st.none() | st.text() | st.floats() | st.integers() | st.binary(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            ),
        )
    ),
    st.integers(0, 4_000),
)
@pytest.mark.slow(reason="generates whole conversations")
def test_whatever_a_message_holds_it_can_be_published(messages, room):
    """No message stops its turn: what JSON does not know is named, and the bound holds."""
    kept = bounded_messages(messages, room)
    clean_messages(kept)
    assert not kept or len(msgspec.msgpack.encode(kept)) <= room


@given(st.text(max_size=3_000), st.integers(4_000, 9_000))
def test_a_text_that_fits_is_not_touched(text, room):
    """Only what is too large is shortened."""
    fits = len(text.encode("utf-8", "replace")) <= room
    assert clip_text(text, room) == text or not fits
    assert len(clip_text(text * 40, room).encode("utf-8", "replace")) <= room + 200


def row(number: int, state: str, *names: Hashable, **more: object) -> RowMark:
    """Return a row that is active, summarised or gone."""
    return RowMark(number, names, state == "active", state != "gone", **more)


def fates(*rows: RowMark) -> tuple[list[int], dict[int, int]]:
    """Return the messages, and those that were taken back."""
    found: Carried = follow(rows)
    return list(found.first), found.taken_back


MERGED = row(1, "gone", "a"), row(2, "gone", "b")
CARRIED: dict[str, tuple[tuple[RowMark, ...], tuple[list[int], dict[int, int]]]] = {
    "stored by two compressions": (
        (*MERGED, row(3, "gone", "a"), row(4, "active", "a")),
        ([1, 2], {2: 2}),
    ),
    "undone after a compression": (
        (row(1, "gone", "a"), row(3, "gone", "a")),
        ([1], {1: 3}),
    ),
    "summarised, then undone": ((row(1, "summary", "a"), row(3, "gone", "a")), ([1], {1: 3})),
    "summarised again": ((row(1, "gone", "a"), row(3, "summary", "a")), ([1], {})),
    "without an id in common": (
        (row(1, "gone", "time"), row(2, "active", "uid", "time")),
        ([1], {}),
    ),
    "without a time in common": (
        (row(1, "gone", "time", "uid"), row(2, "active", "later", "uid")),
        ([1], {}),
    ),
    "two of one time in the window": ((row(1, "active", "a"), row(2, "active", "a")), ([1, 2], {})),
    "absorbed by a row that stands": (
        (*MERGED, row(3, "active", "a", absorbed=("b",))),
        ([1, 2], {}),
    ),
    "absorbed by a row that is gone": (
        (*MERGED, row(3, "gone", "a", absorbed=("b",))),
        ([1, 2], {1: 3, 2: 2}),
    ),
    "a prompt that Hermes stored anew": (
        (row(1, "gone", "a", by_host=True), row(2, "active", "b")),
        ([2], {}),
    ),
    "a mere summary beside an undo": (
        (row(1, "gone", "a"), row(2, "gone", "a"), row(3, "active")),
        ([1, 3], {1: 2}),
    ),
}
"""Rows, the numbers of the messages that they are, and the rows of those that were taken back."""


@pytest.mark.parametrize("what", CARRIED)
def test_a_message_is_where_its_newest_row_is(what):
    """It stands if that row does; what Hermes did on its own account, nobody took back."""
    rows, expected = CARRIED[what]
    assert fates(*rows) == expected
