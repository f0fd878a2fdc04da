"""Cleaning: what was recalled is not remembered again, the unwritable stops nothing (G9)."""

import enum
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import InvalidEvent
from memorybus.text.cleaning import MAX_DEPTH, clean_messages, clean_text
from memorybus.text.fence import CLOSE, OPEN, build_block, line

BLOCK = build_block([("builtin", [line("drinks tea")])], 500)

texts = st.lists(
    st.sampled_from([OPEN, CLOSE, f"{OPEN}\n", BLOCK, "\x00", "\ud800", "\udc00", "<", "é", "a b"])
    | st.text(st.characters(codec=None), max_size=4),
    max_size=8,
).map("".join)
scalars = (
    texts
    | st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
keys = st.sampled_from(["role", "content", "_db", "api_content", "text", "_"]) | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=12,
)
conversations = st.lists(st.dictionaries(keys, values, max_size=4), max_size=3)


def every(value: Any) -> list[Any]:
    """Return a value and everything in it, keys included."""
    inner: list[Any] = []
    if isinstance(value, Mapping):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        inner = list(value)
    return [value, *(deep for one in inner for deep in every(one))]


# -- texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a plain text with 東京 & é < 3", "a plain text with 東京 & é < 3"),
        (f"question\n\n{BLOCK}", "question\n\n"),
        ("NUL \x00 here", "NUL \ufffd here"),
        ("lone \ud800 and \udfff", "lone \ufffd and \ufffd"),
        ("é \x00 \ud83d", "é \ufffd \ufffd"),
        ("\ufffd stays", "\ufffd stays"),
        ("<memory\x00-context>", "<memory\ufffd-context>"),
    ],
)
def test_a_text_as_it_is_remembered(text, expected):
    """Blocks go; NUL and lone surrogates leave U+FFFD where they stood; the rest is verbatim."""
    assert clean_text(text) == expected


@given(texts)
def test_a_clean_text_can_be_written_down(text):
    """A cleaned text encodes as UTF-8, holds no NUL, and cleaning it again changes nothing."""
    cleaned = clean_text(text)

    assert b"\x00" not in cleaned.encode()
    assert CLOSE not in cleaned
    assert clean_text(cleaned) == cleaned


# -- messages -----------------------------------------------------------------------------------


def test_messages_as_they_are_written():
    """Host marks and injected recall go, at every depth; unknown fields stay as they came."""
    messages: list[dict[str, Any]] = [
        {
            "role": "user",
            "content": f"hello\n\n{BLOCK}",
            "api_content": f"hello\n\n{BLOCK}",
            "_db_persisted": True,
            "x_unknown": {"kept": [1, 2.5, None, True], "_gone": 1},
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": f"a{BLOCK}b", "api_content": "x"},
                {"type": "image_url", "image_url": {"url": "data:…"}},
            ],
            "tool_calls": [
                {"id": "c1", "function": {"name": "f", "arguments": f'{{"q": "{BLOCK}"}}'}}
            ],
        },
    ]

    assert clean_messages(messages) == (
        {
            "role": "user",
            "content": "hello\n\n",
            "x_unknown": {"kept": [1, 2.5, None, True]},
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "ab"},
                {"type": "image_url", "image_url": {"url": "data:…"}},
            ],
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"q": ""}'}}],
        },
    )


@given(conversations)
def test_clean_messages_hold_nothing_unfit(messages):
    """Whatever comes in, what comes out is msgpack and JSON, without marks, recall and NUL."""
    cleaned = clean_messages(messages)
    everything = every(cleaned)

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(cleaned)) == list(cleaned)
    assert json.loads(json.dumps(cleaned)) == list(cleaned)
    for text in (one for one in everything if isinstance(one, str)):
        assert CLOSE not in text
        assert "\x00" not in text
    for mapping in (one for one in everything if isinstance(one, dict)):
        assert not any(key.startswith("_") or key == "api_content" for key in mapping)


@given(conversations)
def test_cleaning_leaves_the_callers_messages_alone(messages):
    """The agent's own messages are not changed, and none of its dicts is kept."""
    before = repr(messages)
    cleaned = clean_messages(messages)

    assert repr(messages) == before
    assert not {id(one) for one in messages} & {id(one) for one in cleaned}


plain = st.dictionaries(
    st.sampled_from(["role", "content", "name", "x"]),
    st.recursive(
        st.text("abc é日<&") | st.integers(-9, 9) | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=8,
    ),
)


@given(st.lists(plain, max_size=3))
def test_clean_messages_come_back_equal(messages):
    """Where there is nothing to clean nothing changes."""
    assert clean_messages(messages) == tuple(messages)


class Colour(enum.StrEnum):
    """A text that is also an enumeration, as client libraries use them."""

    RED = "red"


class Metres(float):
    """A number of a subclass, as numpy has them."""


class Count(int):
    """A whole number of a subclass."""


def test_subclasses_of_plain_types_become_plain():
    """Texts, numbers and mappings of other classes are written as what they stand for."""
    message: Mapping[str, Any] = MappingProxyType(
        {"a": Colour.RED, "b": Metres(1.5), "c": Count(3), "d": (1, True)}
    )
    (cleaned,) = clean_messages([message])

    assert list(cleaned.items()) == [("a", "red"), ("b", 1.5), ("c", 3), ("d", [1, True])]
    assert [type(value) for value in cleaned.values()] == [str, float, int, list]
    assert cleaned["d"][1] is True


def nested(depth: int) -> dict[str, Any]:
    """Return a message of so many containers within each other, itself included."""
    message: dict[str, Any] = {"x": 1}
    for _ in range(depth - 1):
        message = {"x": message}
    return message


CIRCLE: dict[str, Any] = {"role": "user"}
CIRCLE["content"] = [CIRCLE]


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        (["text"], r"^messages\[0\] must be a mapping with string keys, not a str$"),
        ([{}, None], r"^messages\[1\] must be a mapping .* not a NoneType$"),
        (
            [{"content": [{}, {"image": b"\x89PNG"}]}],
            r"^messages\[0\]\.content\[1\]\.image .*bytes",
        ),
        ([{"a": object()}], r"^messages\[0\]\.a cannot be written as JSON: a object"),
        ([{"a": {1, 2}}], r"^messages\[0\]\.a .* a set"),
        ([{"a": float("nan")}], r"^messages\[0\]\.a .* the number nan"),
        ([{"a": [float("-inf")]}], r"^messages\[0\]\.a\[0\] .* the number -inf"),
        ([{"a": 1 << 64}], r"^messages\[0\]\.a .* more than 64 bits"),
        ([{"a": -(1 << 63) - 1}], r"^messages\[0\]\.a .* more than 64 bits"),
        ([{"a": {1: 2}}], r"^messages\[0\]\.a: keys must be strings, not a int$"),
        ([{"k" * 99: object()}], rf"^messages\[0\]\.{'k' * 40} cannot"),
        ([nested(MAX_DEPTH + 1)], rf"deeper than {MAX_DEPTH} levels"),
        ([CIRCLE], rf"deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_is_not_json_is_refused_by_its_path(messages, named):
    """A value that cannot be written is an error that says where it stands and what it is."""
    with pytest.raises(InvalidEvent, match=named):
        clean_messages(messages)


def test_messages_may_be_as_deep_as_the_bound():
    """Exactly `MAX_DEPTH` containers are accepted (G10)."""
    assert clean_messages([nested(MAX_DEPTH)]) == (nested(MAX_DEPTH),)
