"""Message JSONL is parsed whole or refused with its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.operations.ingest.transcripts import Transcript, TranscriptError, parse_transcript

USER = {"role": "user", "content": "Where is the ferry?"}
ASSISTANT = {"role": "assistant", "content": "At pier two."}


def jsonl(*values: object) -> bytes:
    """Return values as JSON lines."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def parsed(data: bytes) -> Transcript:
    """Parse bytes as the file ``chat.jsonl``."""
    return parse_transcript(data, "chat.jsonl", "chat")


def sides(data: bytes) -> list[tuple[str, str]]:
    """Return the two sides of each turn of a file with one conversation."""
    (conversation,) = parsed(data).conversations
    return [(turn.user, turn.assistant) for turn in conversation.turns]


def test_a_user_message_and_its_answer_are_one_turn():
    """A turn is a user message and what follows it, in the session named like the file."""
    (conversation,) = parsed(jsonl(USER, ASSISTANT)).conversations

    assert conversation.session == "chat"
    assert [(t.user, t.assistant) for t in conversation.turns] == [
        ("Where is the ferry?", "At pier two.")
    ]
    assert conversation.turns[0].messages == ()


def test_messages_are_kept_where_the_two_sides_do_not_tell_all():
    """A tool call, a name, a system prompt: what the sides leave out stays in the messages."""
    named = USER | {"name": "Ann"}

    (conversation,) = parsed(jsonl(named, ASSISTANT)).conversations

    assert conversation.turns[0].messages == (named, ASSISTANT)
    assert conversation.turns[0].user_name == "Ann"


@pytest.mark.parametrize("name", ["id", "message_id", "uuid"])
def test_a_turn_carries_the_id_of_its_first_message(name):
    """The source's own id of the user's message identifies the turn; an answer's does not."""
    (conversation,) = parsed(jsonl(USER | {name: "m1"}, ASSISTANT | {name: "m2"})).conversations

    assert [turn.source_id for turn in conversation.turns] == ["m1"]


TOOL_CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "12 knots"}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([USER, USER], [(USER["content"], "")] * 2, id="two-questions"),
        pytest.param([ASSISTANT], [("", "At pier two.")], id="greeting"),
        pytest.param([USER], [(USER["content"], "")], id="unanswered"),
        pytest.param(
            [{"role": "system", "content": "Be brief."}, USER, ASSISTANT],
            [(USER["content"], ASSISTANT["content"])],
            id="system-goes-with-the-first-turn",
        ),
        pytest.param(
            [USER, TOOL_CALL, TOOL, ASSISTANT],
            [(USER["content"], "At pier two.")],
            id="tools-stay-inside",
        ),
        pytest.param(
            [USER, ASSISTANT, TOOL_CALL, TOOL, {"role": "assistant", "content": "Hurry."}],
            [(USER["content"], "At pier two.\n\nHurry.")],
            id="two-texts-of-one-answer",
        ),
        pytest.param(
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}],
            [("a", "")],
            id="parts",
        ),
    ],
)
def test_messages_are_grouped_into_turns(messages, expected):
    """Every user message opens a turn; tool calls and further texts stay in it."""
    assert sides(jsonl(*messages)) == expected


def test_messages_keep_unknown_fields():
    """Fields that nobody knows come through untouched."""
    odd = USER | {"mood": {"wind": [1, None, "nord"]}}

    (conversation,) = parsed(jsonl(odd)).conversations

    assert conversation.turns[0].messages == (odd,)


def test_messages_without_content_are_left_out_and_counted():
    """An empty message is no turn, and no silence: it is counted."""
    transcript = parsed(jsonl({"role": "user", "content": ""}, USER, {"role": "assistant"}))

    assert transcript.skipped == 2
    assert transcript.turns == 1


@pytest.mark.parametrize("field", ["session_id", "session", "conversation_id"])
def test_lines_may_name_their_session(field):
    """Interleaved sessions are told apart, each with its own order."""
    lines = [USER | {field: "a"}, USER | {field: "b"}, ASSISTANT | {field: "a"}]

    found = {c.session: len(c.turns) for c in parsed(jsonl(*lines)).conversations}

    assert found == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([USER], {"chat": False}),
        ([USER | {"session": "chat"}], {"chat": True}),
        ([USER, USER | {"session": "chat"}], {"chat": False}),
        ([USER | {"session": "chat-2"}, USER], {"chat-2": True, "chat": False}),
        ([{"messages": [USER]}, USER], {"chat:1": False, "chat": False}),
        ([{"messages": [USER]}], {"chat": False}),
        ([{"messages": [USER], "session": "c"}], {"c": True}),
        ([{"messages": [USER, USER | {"session": "c"}]}], {"chat": False, "c": True}),
    ],
)
def test_it_is_known_who_named_a_session(values, named):
    """An id that begins like the file's name was not made of it if the file gives it itself."""
    found = parsed(jsonl(*values)).conversations

    assert {one.session: one.named for one in found} == named


def test_a_line_may_hold_a_whole_conversation():
    """Lines with ``messages`` are a session each, named or numbered by line."""
    lines = [{"messages": [USER]}, {"messages": [USER, ASSISTANT], "session_id": "x"}]

    assert [c.session for c in parsed(jsonl(*lines)).conversations] == ["chat:1", "x"]


@pytest.mark.parametrize(
    "document", [[USER, ASSISTANT], {"messages": [USER, ASSISTANT]}], ids=["list", "object"]
)
def test_a_pretty_printed_document_is_one_conversation(document):
    """A whole file of JSON is read like its lines."""
    assert sides(json.dumps(document, indent=2).encode()) == [
        (USER["content"], ASSISTANT["content"])
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    """Files with a byte order mark are read like those without."""
    assert sides(b"\xef\xbb\xbf" + jsonl(USER)) == [(USER["content"], "")]


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (1_700_000_000, 1_700_000_000_000),
        (1_700_000_000.25, 1_700_000_000_250),
        (1_700_000_000_123, 1_700_000_000_123),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
    ],
)
def test_time_stamps_are_read(stamp, expected):
    """Seconds, milliseconds and ISO 8601 mean the same moment; no zone means UTC."""
    (conversation,) = parsed(jsonl(USER | {"timestamp": stamp})).conversations

    assert conversation.turns[0].at == expected
    assert conversation.at == expected


GOOD = jsonl(USER)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (GOOD + b'{"role": "user"', "chat.jsonl:2: not JSON"),
        (GOOD + b"\xff\xfe\n", "chat.jsonl:2: not UTF-8"),
        (GOOD + b"[1]\n", "chat.jsonl:2: expected a message object, not a list"),
        (GOOD + b'"hello"\n', "chat.jsonl:2: expected a message object, not a text"),
        (GOOD + b"null\n", "chat.jsonl:2: expected a message object, not null"),
        (GOOD + jsonl({"content": "x"}), "chat.jsonl:2: 'role' must be one of"),
        (GOOD + jsonl({"role": ["user"], "content": "x"}), "chat.jsonl:2: 'role' must be"),
        (GOOD + jsonl(USER | {"content": 7}), "chat.jsonl:2: 'content' must be a text or a list"),
        (GOOD + jsonl(USER | {"content": [7]}), "chat.jsonl:2: a part's 'text' must be a text"),
        (GOOD + jsonl(USER | {"session": {}}), "chat.jsonl:2: 'session' must be a text"),
        (GOOD + jsonl(USER | {"timestamp": "noon"}), "chat.jsonl:2: 'timestamp'"),
        (GOOD + jsonl(USER | {"timestamp": True}), "chat.jsonl:2: 'timestamp'"),
        (GOOD + b'{"role": "user", "content": "x", "at": NaN}\n', "chat.jsonl:2: 'at'"),
        (GOOD + b'{"role": "user", "content": "x", "at": 1e400}\n', "chat.jsonl:2: 'at'"),
        (GOOD + b'{"role": "user", "content": "x", "at": -5}\n', "chat.jsonl:2: 'at'"),
        (GOOD + jsonl({"messages": 3}), "chat.jsonl:2: 'messages' must be a list"),
        (GOOD + jsonl({"messages": [3]}), "chat.jsonl:2: messages[0]: expected a message"),
        (GOOD + b"[" * 200_000 + b"\n", "chat.jsonl:2: not JSON"),
        (GOOD + b"1" * 10_000 + b"\n", "chat.jsonl:2: not JSON we can read"),
        (b"", "chat.jsonl: no message with content"),
        (b"\n \n", "chat.jsonl: no message with content"),
        (jsonl({"role": "user", "content": ""}), "chat.jsonl: no message with content"),
        (b"\x00\x01\x02", "chat.jsonl:1: not JSON"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(data, complaint):
    """A malformed file is refused whole, by file, line and reason."""
    with pytest.raises(TranscriptError) as caught:
        parsed(data)

    assert str(caught.value).startswith(complaint)


def test_lone_surrogates_and_nul_are_text_like_any_other():
    """What JSON can say, a transcript may say; the bus decides later what it takes."""
    assert sides(b'{"role": "user", "content": "\\ud800 \\u0000"}') == [("\ud800 \x00", "")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)
messages = st.dictionaries(
    st.sampled_from(["role", "content", "session", "messages", "timestamp", "name", "tool_calls"]),
    json_values | st.sampled_from(["user", "assistant", "system", "tool"]),
)


@given(
    st.binary(max_size=200) | st.lists(messages | json_values, max_size=5).map(lambda v: jsonl(*v))
)
def test_garbage_is_parsed_or_refused_clearly(data):
    """No bytes raise anything but the one clear error."""
    try:
        transcript = parsed(data)
    except TranscriptError as error:
        complaint = str(error)
    else:
        complaint = "chat.jsonl"
        assert all(c.turns for c in transcript.conversations)
    assert complaint.startswith("chat.jsonl")


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(min_size=1)), min_size=1))
def test_nothing_said_is_lost_or_reordered(said):
    """Every text stands in exactly one turn, verbatim and in order."""
    data = jsonl(*({"role": role, "content": text} for role, text in said))

    (conversation,) = parsed(data).conversations

    kept = [
        (role, text)
        for turn in conversation.turns
        for role, text in (
            [(m["role"], m["content"]) for m in turn.messages]
            or [("user", turn.user), ("assistant", turn.assistant)]
        )
        if text
    ]
    assert kept == said
    assert [t.user for t in conversation.turns if t.user] == [t for r, t in said if r == "user"]
