"""Messages in the forms of many programs become turns, and what cannot be read is named."""

import gzip
import json
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_console.operations.ingest.reading import json_files as decoding
from memorybus_console.operations.ingest.reading.model import (
    ReadingOptions,
    Transcript,
    TranscriptError,
)
from memorybus_console.operations.ingest.reading.transcripts import parse_transcript

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


def test_lines_of_claude_code_that_hold_no_turn_are_dropped_without_alarm():
    """A summary and a file history are counted by their kind, and no line is refused."""
    notes = [
        {"type": "summary", "summary": "Ferries", "leafUuid": "u-1"},
        {"type": "file-history-snapshot", "messageId": "u-2", "snapshot": {"files": {}}},
    ]
    transcript = parsed(jsonl(*notes, USER, ASSISTANT))

    assert transcript.turns == 1
    assert (transcript.left_out.unread, list(transcript.left_out.named)) == (0, [])
    assert transcript.left_out.dropped == {"summaries": 1, "file histories": 1}


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
        ("1700000000", 1_700_000_000_000),
        ("1700000000.25", 1_700_000_000_250),
        (1_700_000_000_123_456, 1_700_000_000_123),
        (1_700_000_000_123_456_789, 1_700_000_000_123),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123),
        ("2023-11-14 22:13:20 UTC", 1_700_000_000_000),
        ("2023/11/14 22:13:20", 1_700_000_000_000),
        ("Tue, 14 Nov 2023 22:13:20 +0000", 1_700_000_000_000),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800_000),
        ({"$date": "2023-11-14T22:13:20Z"}, 1_700_000_000_000),
        ({"seconds": 1_700_000_000, "nanos": 5}, 1_700_000_000_000),
    ],
)
def test_time_stamps_are_read(stamp, expected):
    """Numbers of any unit, ISO 8601 and RFC 2822 mean the same moment."""
    (conversation,) = parsed(jsonl(USER | {"timestamp": stamp})).conversations

    assert conversation.turns[0].at == expected
    assert conversation.at == expected


GOOD = jsonl(USER)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b'{"role": "user"', "chat.jsonl:2: not JSON"),
        (b"\xff\xfe\n", "chat.jsonl:2: not UTF-8"),
        (b"[1]\n", "chat.jsonl:2: [0]: expected a message object, not a number"),
        (b'"hello"\n', "chat.jsonl:2: expected a message object, not a text"),
        (b"null\n", "chat.jsonl:2: expected a message object, not null"),
        (jsonl({"content": "x"}), "chat.jsonl:2: no message: it names no role"),
        (jsonl({"role": ["user"], "content": "x"}), "chat.jsonl:2: no message: the role"),
        (jsonl({"role": "narrator", "content": "x"}), "chat.jsonl:2: no message: the role"),
        (jsonl({"messages": 3}), "chat.jsonl:2: no message: it names no role"),
        (jsonl({"messages": [3]}), "chat.jsonl:2: messages[0]: expected a message"),
        (b"[" * 200_000 + b"\n", "chat.jsonl:2: not JSON"),
        (b"1" * 10_000 + b"\n", "chat.jsonl:2: not JSON that can be read"),
        (b"[" * 700 + b"]" * 700, "chat.jsonl:2: [0]: [0]"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_left_out(line, complaint):
    """A line that is no message costs itself: it is named by file, line and reason."""
    transcript = parsed(GOOD + line + b"\n" + jsonl(ASSISTANT))

    assert [refusal.why[: len(complaint)] for refusal in transcript.left_out.named] == [complaint]
    assert transcript.left_out.unread == 1
    assert [(t.user, t.assistant) for c in transcript.conversations for t in c.turns] == [
        (USER["content"], ASSISTANT["content"])
    ]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "chat.jsonl: no message with content"),
        (b"\n \n", "chat.jsonl: no message with content"),
        (jsonl({"role": "user", "content": ""}), "chat.jsonl: no message with content"),
        (b"\x00\x01\x02", "chat.jsonl:1: not JSON"),
        (b"PK\x03\x04 and so on", "chat.jsonl: the ZIP archive is damaged"),
    ],
)
def test_a_file_of_which_nothing_can_be_read_is_refused(data, complaint):
    """A file without any turn is refused, by its first unreadable line."""
    with pytest.raises(TranscriptError) as caught:
        parsed(data)

    assert str(caught.value).startswith(complaint)


def test_unreadable_lines_are_counted_and_the_first_hundred_named():
    """G10: a report names a hundred lines of a file, and counts all of them."""
    left_out = parsed(GOOD + b"{oops\n" * 250).left_out

    assert (left_out.unread, len(left_out.named)) == (250, 100)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "image_url", "text": None}], "a"),
        ({"type": "text", "text": "a"}, "a"),
        ([{"type": "text", "text": {"value": "a", "annotations": []}}], "a"),
        ([{"type": "output_text", "text": "a"}, "b", 7, None, True], "a\nb\n7"),
        ({"content_type": "text", "parts": ["a", {"content_type": "image_asset_pointer"}]}, "a"),
        (7, "7"),
    ],
)
def test_contents_of_other_forms_are_read(content, text):
    """A part may be an object, a text or a number, and its text may lie one object deeper."""
    assert sides(jsonl({"role": "user", "content": content})) == [(text, "")]


def test_deep_values_cost_no_words():
    """G10: whatever lies deep within a message is cut off, and its words stay."""
    deep = b"[" * 700 + b"]" * 700
    line = b'{"role": "user", "content": [%b, "a"], "x": %b, "timestamp": %b, "author": %b}\n'

    assert sides(line % (deep, deep, deep, deep)) == [("a", "")]


@pytest.mark.parametrize(
    ("value", "session"),
    [
        pytest.param(
            [{"role": "human", "content": "q"}, {"role": "model", "parts": [{"text": "a"}]}],
            "chat",
            id="roles",
        ),
        pytest.param(
            {"contents": [{"role": "user", "parts": [{"text": "q"}]},
                          {"role": "model", "parts": [{"text": "no", "thought": True},
                                                      {"text": "a"}]}]},
            "chat",
            id="gemini",
        ),
        pytest.param(
            {"id": "c-1", "conversations": [{"from": "human", "value": "q"},
                                            {"from": "gpt", "value": "a"}]},
            "c-1",
            id="sharegpt",
        ),
        pytest.param(
            [{"type": "human", "data": {"content": "q"}}, {"type": "ai", "data": {"content": "a"}}],
            "chat",
            id="langchain",
        ),
        pytest.param(
            [{"lc": 1, "id": ["langchain", "schema", "messages", name], "kwargs": {"content": text}}
             for name, text in (("HumanMessage", "q"), ("AIMessageChunk", "a"))],
            "chat",
            id="langchain-serialized",
        ),
        pytest.param(
            [{"uuid": "c-2", "name": "Talk", "chat_messages": [
                {"uuid": "m1", "sender": "human", "text": "q", "content": []},
                {"uuid": "m2", "sender": "assistant", "text": "a", "content": [
                    {"type": "thinking", "thinking": "no"}, {"type": "text", "text": "a"}]}]}],
            "c-2",
            id="claude.ai",
        ),
        pytest.param(
            [{"conversation_id": "c-3", "current_node": "d", "mapping": {
                "a": {"parent": None, "message": None},
                "b": {"parent": "a", "message": {
                    "author": {"role": "user"}, "content": {"parts": ["q"]}}},
                "c": {"parent": "b", "message": {
                    "author": {"role": "assistant"}, "content": {"parts": ["another branch"]}}},
                "e": {"parent": "b", "message": {"author": {"role": "assistant"}, "content": {
                    "content_type": "thoughts", "thoughts": [{"content": "no"}]}}},
                "f": {"parent": "e", "message": {"author": {"role": "assistant"},
                    "recipient": "python", "content": {"content_type": "code", "text": "no"}}},
                "d": {"parent": "f", "message": {
                    "author": {"role": "assistant"}, "content": {"parts": ["a"]}}}}}],
            "c-3",
            id="chatgpt",
        ),
        pytest.param(
            [{"type": role, "sessionId": "c-4", "message": {"role": role, "content": text}}
             for role, text in (("user", "q"), ("assistant", "a"))],
            "c-4",
            id="claude-code",
        ),
    ],
)  # fmt: skip
def test_exports_of_other_programs_are_read(value, session):
    """Each form in which programs write messages gives the same turn, without its reasoning."""
    (conversation,) = parsed(json.dumps(value).encode()).conversations

    assert conversation.session == session
    assert [(turn.user, turn.assistant) for turn in conversation.turns] == [("q", "a")]
    assert '"no"' not in json.dumps([turn.messages for turn in conversation.turns])


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [{"type": "thinking", "thinking": "HM"}, {"type": "text", "text": "a"}]},
        {"content": [{"type": "redacted_thinking", "data": "HM"}, {"type": "text", "text": "a"}]},
        {"content": [{"type": "reasoning", "text": "HM"}, {"type": "output_text", "text": "a"}]},
        {"content": "a", "reasoning_content": "HM"},
        {"content": "a", "reasoning": "HM", "reasoning_details": [{"text": "HM"}]},
        {"content": "a", "additional_kwargs": {"reasoning_content": "HM"}},
        {"content": "<think>HM</think>\n\na"},
        {"content": "HM</think>a"},
        {"content": [{"type": "text", "text": "<thinking>HM</thinking>a"}]},
    ],
)
def test_reasoning_is_never_kept(answer):
    """What a model only thought is in neither side of a turn, nor in its messages."""
    (conversation,) = parsed(jsonl(USER, {"role": "assistant"} | answer)).conversations

    (turn,) = conversation.turns
    assert (turn.user, turn.assistant) == (USER["content"], "a")
    assert "HM" not in json.dumps(turn.messages)


def test_a_person_may_write_of_thinking():
    """Only a model's text is searched for reasoning, and only its beginning."""
    asked = {"role": "user", "content": "<think>x</think>why?"}
    told = {"role": "assistant", "content": "Use <think>x</think>."}

    assert sides(jsonl(asked, told)) == [(asked["content"], told["content"])]


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "12 knots"}]},
        {"parts": [{"functionResponse": {"name": "f", "response": {"knots": 12}}}]},
    ],
)
def test_a_tool_result_in_a_user_message_is_no_turn(result):
    """A program that sends what a tool returned as the user begins no turn with it."""
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f"}]}

    assert sides(jsonl(USER, call, {"role": "user"} | result, ASSISTANT)) == [
        (USER["content"], ASSISTANT["content"])
    ]


def test_fields_around_messages_count_for_them():
    """Time, title and name of a conversation are those of its messages that have none."""
    later = ASSISTANT | {"timestamp": 1_700_000_100}
    value = {"session_id": "s", "title": "Ferry", "name": "Ann", "created_at": 1_700_000_000,
             "messages": [USER, ASSISTANT, USER, later]}  # fmt: skip

    (conversation,) = parsed(jsonl(value, value | {"session_id": "t"})).conversations[:1]

    assert (conversation.title, conversation.at) == ("Ferry", 1_700_000_000_000)
    assert [(turn.at, turn.user_name) for turn in conversation.turns] == [
        (1_700_000_000_000, "Ann"),
        (1_700_000_100_000, "Ann"),
    ]


def test_naive_times_are_in_the_zone_of_the_settings():
    """A time without a zone is one on the clock of the person who exported it."""
    line = jsonl(USER | {"timestamp": "2026-03-05T20:00:00"})

    transcript = parse_transcript(line, "f", "f", ReadingOptions(zone=timezone(timedelta(hours=8))))

    assert transcript.conversations[0].at == 1_772_712_000_000


def test_a_time_that_is_none_is_counted_and_the_words_stay():
    """A message with an unreadable time has the time of what is around it."""
    value = {"created_at": 1_700_000_000, "messages": [USER | {"timestamp": "noon", "at": {}}]}

    transcript = parsed(jsonl(value))

    assert transcript.conversations[0].turns[0].at == 1_700_000_000_000
    assert transcript.left_out.dropped == {"unreadable times": 2}


PICTURE = "data:image/png;base64," + "A" * 2_000_000


@pytest.mark.parametrize(
    "picture",
    [
        {"content": [{"type": "text", "text": "look"},
                     {"type": "image_url", "image_url": {"url": PICTURE}}]},
        {"content": [{"type": "text", "text": "look"},
                     {"type": "image", "source": {"type": "base64", "data": PICTURE[22:]}}]},
        {"parts": [{"text": "look"}, {"inlineData": {"data": PICTURE[22:]}}]},
        {"content": "look", "images": [PICTURE[22:]]},
        {"content": "look", "attachments": [{"whatever": PICTURE[22:]}] * 3},
    ],
)  # fmt: skip
def test_a_turn_with_a_large_picture_keeps_its_words(picture):
    """G10: the data of a picture is dropped, so that the turn fits an event."""
    (conversation,) = parsed(jsonl({"role": "user"} | picture)).conversations

    (turn,) = conversation.turns
    assert turn.user == "look"
    assert len(json.dumps(turn.messages)) < 1 << 20


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_files_of_other_encodings_are_read(encoding):
    """A byte order mark, UTF-16 and UTF-32 are what some editors save."""
    line = json.dumps({"role": "user", "content": "Grüße 日本"}, ensure_ascii=False)

    assert sides((line + "\r\n" + line + "\n").encode(encoding)) == [("Grüße 日本", "")] * 2


def test_gzip_is_unpacked_up_to_a_bound(monkeypatch):
    """G10: a small file that unpacks to a whole disk is refused with what to do."""
    assert sides(gzip.compress(jsonl(USER))) == [(USER["content"], "")]
    monkeypatch.setattr(decoding, "LARGEST_UNPACKED", 1 << 20)
    with pytest.raises(TranscriptError, match=r"unpacks to more than 1 MiB; unpack it with gunzip"):
        parsed(gzip.compress(b" " * (2 << 20)))


def test_what_is_torn_off_costs_itself():
    """The messages before the end of a torn file are read, whatever it is packed in."""
    lines = jsonl(*[USER | {"content": str(n)} for n in range(9)])
    whole = json.dumps([USER, USER], indent=1).encode()

    torn = [lines[:-20], gzip.compress(lines)[:-9], whole[:-20]]

    texts = [[turn.user for turn in parsed(data).conversations[0].turns] for data in torn]
    assert texts == [list("01234567"), list("012345678"), [USER["content"]]]
    assert [parsed(data).left_out.unread for data in torn] == [1, 1, 1]


@pytest.mark.parametrize("name", ["id", "message_id", "uuid"])
@pytest.mark.parametrize("own", ["m1", 1])
def test_a_turn_carries_the_id_of_its_first_message(name, own):
    """The source's own id of the user's message identifies the turn; an answer's does not."""
    (conversation,) = parsed(jsonl(USER | {name: own}, ASSISTANT | {name: "m2"})).conversations

    assert [turn.source_id for turn in conversation.turns] == [str(own)]


def test_an_id_of_several_messages_is_no_id():
    """What does not distinguish the turns of a session identifies none of them."""
    (conversation,) = parsed(jsonl(USER | {"id": 1}, USER | {"id": 1})).conversations

    assert [turn.source_id for turn in conversation.turns] == ["", ""]


def test_lone_surrogates_and_nul_are_text_like_any_other():
    """What JSON can say, a transcript may say; the bus decides later what it takes."""
    assert sides(b'{"role": "user", "content": "\\ud800 \\u0000"}') == [("\ud800 \x00", "")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)
known_words = st.sampled_from([
    "user", "assistant", "system", "tool", "model", "human", "text", "thinking", "tool_result",
])  # fmt: skip
known_fields = st.sampled_from([
    "role", "content", "session", "messages", "timestamp", "name", "tool_calls", "id", "parts",
    "type", "author", "from", "value", "mapping", "current_node", "message", "data", "reasoning",
    "parent", "title", "speaker_a", "speaker_b", "session_1", "session_1_date_time", "sample_id",
])  # fmt: skip
messages = st.recursive(
    json_values | known_words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(known_fields, inner, max_size=6),
    max_leaves=16,
)


@given(
    st.binary(max_size=200) | st.lists(messages, max_size=5).map(lambda v: jsonl(*v)), st.booleans()
)
def test_garbage_is_parsed_or_refused_clearly(data, packed):
    """No bytes raise anything but the one clear error, and each unreadable line has its place."""
    try:
        transcript = parsed(gzip.compress(data)[:-1] if packed else data)
    except TranscriptError as error:
        complaints = [str(error)]
    else:
        complaints = [refusal.why for refusal in transcript.left_out.named]
        assert all(c.turns for c in transcript.conversations)
    assert all(complaint.startswith("chat.jsonl") for complaint in complaints)


@given(known_fields | st.text(max_size=6), messages)
def test_no_value_of_a_field_refuses_the_file(field, value):
    """Whatever a field of one line holds, the other lines are read."""
    transcript = parsed(jsonl(USER, {"role": "user", "content": "x"} | {field: value}, ASSISTANT))

    said = [
        text
        for conversation in transcript.conversations
        for turn in conversation.turns
        for text in (turn.user, turn.assistant)
    ]
    assert USER["content"] in said
    assert any(text.endswith(ASSISTANT["content"]) for text in said)


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
