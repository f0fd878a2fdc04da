"""Exports of other memories become events: a table for each source, in its documented shape."""

import json
from collections.abc import Sequence
from datetime import UTC, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import MemoryWritten, Scope, SessionStarted, TurnCompleted
from memorybus_console.operations.ingest.foreign.importing import (
    EnvelopedExport,
    ImportOwner,
    build_envelopes,
)
from memorybus_console.operations.ingest.foreign.records import Export, ForeignError
from memorybus_console.operations.ingest.foreign.service import (
    SOURCES,
    ForeignService,
    is_address,
)
from memorybus_console.operations.ingest.foreign.sources import PARSERS

OURS = ImportOwner(Scope(agent="pilot", user="me", workspace="boat"))
NOON = 1_780_315_200_000  # 2026-06-01T12:00:00Z
NOW = NOON + 60_000


def taken(source: str, value: Any, owner: ImportOwner = OURS) -> EnvelopedExport:
    """Return the events of an export, all at midnight of 1970 where it does not tell."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return build_envelopes(source, "f", PARSERS[source](Export(data, "f", UTC)), owner, 0, NOW)


def writes(found: EnvelopedExport) -> list[tuple[Any, ...]]:
    """Return what memory writes say: action, store, text, old text, user, agent, time."""
    return [
        (e.action, e.store, e.content, e.old_text, one.scope.user, one.scope.agent, one.at)
        for one in found.envelopes
        if isinstance(e := one.event, MemoryWritten)
    ]


def turns(found: EnvelopedExport) -> list[tuple[Any, ...]]:
    """Return what turns say: both sides, session, ordinal, user, agent, time."""
    return [
        (e.user, e.assistant, one.session.id, e.ordinal, one.scope.user, one.scope.agent, one.at)
        for one in found.envelopes
        if isinstance(e := one.event, TurnCompleted)
    ]


def begun(found: EnvelopedExport) -> Sequence[tuple[str, str]]:
    """Return the sessions that began, and whose."""
    return [
        (one.session.id, one.scope.user)
        for one in found.envelopes
        if isinstance(one.event, SessionStarted)
    ]


MEM0 = {
    "results": [
        {
            "id": "0c9a6f0e-7a1b-4f0d-9a3e-5a3f6b1c2d3e",
            "memory": "Ann's boat is moored in Kiel",
            "hash": "d41d8cd98f00b204e9800998ecf8427e",
            "created_at": "2026-06-01T05:00:00-07:00",
            "updated_at": "2026-06-01T12:00:00+00:00",
            "user_id": "ann",
            "run_id": "trip",
            "actor_id": "Ann",
            "role": "user",
            "metadata": {"category": "travel"},
        },
        {"id": "2", "memory": "Answer briefly", "agent_id": "skipper", "created_at": None},
        {"id": "3", "memory": " ", "user_id": "ann"},
    ]
}


def test_mem0_memories_are_written_to_their_owners():
    """A person's memory goes to the person's store, an agent's own to the agent's."""
    found = taken("mem0", MEM0)
    assert writes(found) == [
        ("add", "memory", "Answer briefly", "", "me", "skipper", 0),
        ("add", "user", "Ann's boat is moored in Kiel", "", "ann", "pilot", NOON),
    ]
    agents, anns = found.envelopes
    assert (agents.key, anns.key) == ("store:skipper:memory", "store:ann:user")
    assert (anns.session.id, anns.scope.platform, anns.scope.workspace) == (
        "mem0:trip",
        "mem0",
        "boat",
    )
    assert anns.event.provenance == {
        "origin": "import",
        "source": "mem0",
        "source_id": MEM0["results"][0]["id"],
    }


@pytest.mark.parametrize(
    "form",
    [
        MEM0,
        MEM0["results"],
        {"memories": MEM0["results"], "count": 3},
        b"\n".join(json.dumps(one).encode() for one in MEM0["results"]) + b"\n",
        b"\xef\xbb\xbf" + json.dumps(MEM0).encode(),
    ],
    ids=["object", "list", "other list", "lines", "byte order mark"],
)
def test_the_same_memories_in_any_form_are_the_same_events(form):
    """G2: an id depends on source, kind, own id and text alone."""
    assert taken("mem0", form) == taken("mem0", MEM0)


def test_a_changed_memory_is_a_new_event():
    """What a source changed since comes as a new memory: nothing of it is lost."""
    first, second = ({"id": "1", "memory": text} for text in ("old", "new"))
    ids = {taken("mem0", [one]).envelopes[0].id for one in (first, second, first)}
    assert len(ids) == 2


def test_named_owners_go_before_the_sources():
    """--user and --agent decide, whatever the source says."""
    found = taken("mem0", MEM0, ImportOwner(Scope(), agent="a", user="u"))
    assert {(one.scope.agent, one.scope.user) for one in found.envelopes} == {("a", "u")}


LISTED = sorted(set(PARSERS) - {"letta"})
"""The sources whose records may stand in a list, or on lines; Letta's file is one object."""
NO_EXPORTS = [
    (b"{oops", "f:1: not JSON"),
    (b'"a"\n{oops', "f:2: not JSON"),
    (b"[1]", "item 1: expected an object"),
    (b"\xff\xfe", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b"[" * 700 + b"]" * 700, "expected an object"),
]
NO_AGENTS: tuple[Any, ...] = (
    b"{oops", [1], {}, {"agents": {}}, {"agents": [1]}, {"agents": [], "blocks": [1]},
)  # fmt: skip


def test_what_is_no_export_is_refused_whole():
    """A file that is not JSON, or not one of objects, is refused with its place."""
    for source in LISTED:
        for data, why in NO_EXPORTS:
            with pytest.raises(ForeignError, match=why):
                taken(source, data)
    for value in NO_AGENTS:
        with pytest.raises(ForeignError, match="f:"):
            taken("letta", value)


HONCHO = {
    "items": [
        {"id": "m1", "content": "Where is the ladder?", "peer_id": "ann", "session_id": "c",
         "created_at": "2026-06-01T12:00:00Z", "metadata": {}, "workspace_id": "w"},
        {"id": "m2", "content": "Behind the shed.", "peer_id": "skipper", "session_id": "c",
         "created_at": "2026-06-01T12:00:01Z", "workspace_id": "w", "token_count": 4},
        {"id": "m3", "content": "And mine?", "peer_id": "bob", "session_id": "c",
         "created_at": "2026-06-01T12:00:02Z", "workspace_id": "w", "token_count": 3},
        {"id": "m4", "content": "Broken.", "peer_id": "skipper", "session_id": "c",
         "created_at": "2026-06-01T12:00:03Z", "workspace_id": "w", "token_count": 2},
        {"id": "c1", "content": "Ann owns a ladder", "observer_id": "skipper", "observed_id": "ann",
         "session_id": "c", "level": "explicit", "times_derived": 1,
         "created_at": "2026-06-01T12:00:04Z"},
        {"id": "c2", "content": "Skipper answers briefly", "observer_id": "skipper",
         "observed_id": "skipper", "created_at": "2026-06-01T12:00:05Z"},
    ],
    "page": 1, "size": 50, "total": 6, "pages": 1,
}  # fmt: skip


def test_honcho_peers_are_persons_but_for_the_agent():
    """In a shared session each turn is of who spoke; what is concluded of the agent is its own."""
    found = taken("honcho", HONCHO, ImportOwner(Scope(), agent="skipper"))
    assert turns(found) == [
        ("Where is the ladder?", "Behind the shed.", "honcho:c", 0, "ann", "skipper", NOON),
        ("And mine?", "Broken.", "honcho:c", 0, "bob", "skipper", NOON + 2_000),
    ]
    assert begun(found) == [("honcho:c", "ann"), ("honcho:c", "bob")]
    assert writes(found) == [
        ("add", "user", "Ann owns a ladder", "", "ann", "skipper", NOON + 4_000),
        ("add", "memory", "Skipper answers briefly", "", "default", "skipper", NOON + 5_000),
    ]


def test_honcho_pages_in_any_order_are_the_same_events():
    """A session's messages are put in the order of their times."""
    owner = ImportOwner(Scope(), agent="skipper")
    back = {"items": HONCHO["items"][::-1]}
    there = {one.id for one in taken("honcho", HONCHO, owner).envelopes}
    assert {one.id for one in taken("honcho", back, owner).envelopes} == there


HINDSIGHT = {
    "items": [
        {"id": "u1", "text": "Ann moved to Kiel", "fact_type": "world", "document_id": "d",
         "mentioned_at": "2026-06-01T12:00:00Z", "occurred_start": "2026-05-01T00:00:00Z",
         "date": "2026-05-01T00:00:00Z", "state": "valid", "metadata": {"user_id": "ann"},
         "tags": [], "entities": "Ann, Kiel", "proof_count": 1},
        {"id": "u2", "text": "Ann lives in Bonn", "fact_type": "world", "metadata": None,
         "date": "2026-06-01T12:00:00Z", "state": "invalidated",
         "invalidated_at": "2026-06-01T12:00:09Z"},
        {"id": "u3", "text": "Ann moves a lot", "fact_type": "observation",
         "source_memory_ids": ["u1", "u2"], "date": ""},
    ],
    "total": 3, "limit": 100, "offset": 0,
}  # fmt: skip


def test_hindsight_facts_come_without_what_is_derived_of_them():
    """Observations are made anew by whoever wants them; an invalidated fact is removed again."""
    found = taken("hindsight", HINDSIGHT)
    assert writes(found) == [
        ("add", "user", "Ann moved to Kiel", "", "ann", "pilot", NOON),
        ("add", "user", "Ann lives in Bonn", "", "me", "pilot", NOON),
        ("remove", "user", "", "Ann lives in Bonn", "me", "pilot", NOON + 9_000),
    ]


MENTISDB = {
    "chain_key": "k", "direction": "forward", "has_more": False, "next_cursor": None,
    "thoughts": [
        {"schema_version": 3, "id": "t1", "index": 0, "timestamp": "2026-06-01T12:00:00Z",
         "agent_id": "skipper", "agent_name": "Skipper", "agent_owner": "ann",
         "thought_type": "FactLearned", "role": "Memory", "content": "The pump needs grease A",
         "tags": [], "concepts": [], "relations": [], "refs": [], "scope": None,
         "prev_hash": "", "hash": "00"},
        {"id": "t2", "index": 1, "timestamp": "2026-06-01T12:00:01Z", "agent_id": "skipper",
         "agent_owner": "ann", "thought_type": "Correction", "role": "Memory",
         "content": "The pump needs grease B",
         "relations": [{"kind": "Supersedes", "target_id": "t1"}]},
        {"id": "t3", "index": 2, "timestamp": "2026-06-01T12:00:02Z", "agent_id": "skipper",
         "thought_type": "LessonLearned", "role": "Memory", "content": "Ask first",
         "scope": "Agent", "relations": [{"kind": "Supersedes", "target_id": "elsewhere"}]},
    ],
}  # fmt: skip


def test_mentisdb_thoughts_replace_those_they_supersede():
    """A relation to a thought of the same export becomes a replacement; others do nothing."""
    a, b = "The pump needs grease A", "The pump needs grease B"
    assert writes(taken("mentisdb", MENTISDB)) == [
        ("add", "user", a, "", "ann", "skipper", NOON),
        ("replace", "user", b, a, "ann", "skipper", NOON + 1_000),
        ("add", "memory", "Ask first", "", "me", "skipper", NOON + 2_000),
    ]


ZEP = {
    "items": [
        {"uuid": "m1", "role": "user", "name": "Ann", "content": "Hello", "thread_uuid": "th",
         "created_at": "2026-06-01T12:00:05Z", "reference_time": "2026-06-01T12:00:00Z",
         "processed": True},
        {"uuid": "m2", "role": "tool", "content": "{}", "thread_uuid": "th"},
        {"uuid": "m3", "role": "assistant", "content": "Hi Ann", "thread_uuid": "th",
         "reference_time": "2026-06-01T12:00:01Z"},
    ],
    "edges": [
        {"uuid": "e1", "fact": "Ann lives in Bonn", "name": "LIVES_IN", "user_uuid": "ann",
         "created_at": "2026-06-01T12:00:00Z", "valid_at": "2020-01-01T00:00:00Z",
         "invalid_at": "2026-06-01T00:00:00Z", "expired_at": "2026-06-01T12:00:07Z"},
        {"uuid": "e2", "fact": "Ann is away until July", "user_uuid": "ann",
         "created_at": "2026-06-01T12:00:00Z", "invalid_at": "2026-07-01T00:00:00Z"},
    ],
}  # fmt: skip


IN_2020, TWELVE_HOURS = 1_577_836_800_000, 12 * 3_600_000


def test_zep_threads_and_facts():
    """A fact begins when it became true, and is removed when it ceased to be, if that is past."""
    found = taken("zep", ZEP)
    assert turns(found) == [("Hello", "Hi Ann", "zep:th", 0, "me", "pilot", NOON)]
    assert writes(found) == [
        ("add", "user", "Ann lives in Bonn", "", "ann", "pilot", IN_2020),
        ("remove", "user", "", "Ann lives in Bonn", "ann", "pilot", NOON - TWELVE_HOURS),
        ("add", "user", "Ann is away until July", "", "ann", "pilot", NOON),
    ]
    assert found.left_out.dropped == {"ends in the future": 1}


def test_zep_messages_of_earlier_releases():
    """The role stood in `role_type` and the name in `role`; the thread is named by the file."""
    old = {"messages": [
        {"uuid": "1", "role": "Ann", "role_type": "user", "content": "Hello"},
        {"uuid": "2", "role": "Skipper", "role_type": "assistant", "content": "Hi"},
    ]}  # fmt: skip
    found = taken("zep", old)
    assert turns(found) == [("Hello", "Hi", "zep:f", 0, "me", "pilot", 0)]
    (turn,) = (one.event for one in found.envelopes if isinstance(one.event, TurnCompleted))
    assert (turn.user_name, turn.assistant_name) == ("Ann", "Skipper")


LETTA = {
    "agents": [{
        "id": "agent-0", "name": "Skipper", "block_ids": ["block-0", "block-1", "block-9"],
        "messages": [
            {"id": "message-0", "role": "system", "content": "You are…",
             "created_at": "2026-06-01T11:00:00Z"},
            {"id": "message-1", "role": "user", "created_at": "2026-06-01T12:00:00Z",
             "content": [{"type": "text", "text":
                 '{"type": "user_message", "message": "Hello", "time": "noon"}'}]},
            {"id": "message-2", "role": "assistant", "created_at": "2026-06-01T12:00:01Z",
             "content": [{"type": "text", "text": "I should greet her."}],
             "tool_calls": [{"id": "x", "type": "function", "function": {
                 "name": "send_message", "arguments": '{"message": "Hi Ann"}'}}]},
            {"id": "message-3", "role": "tool", "content": "{}", "tool_call_id": "x",
             "created_at": "2026-06-01T12:00:02Z"},
            {"id": "message-4", "role": "user", "created_at": "2026-06-01T12:00:03Z",
             "content": '{"type": "heartbeat", "reason": "…"}'},
            {"id": "message-5", "role": "user", "created_at": "2026-06-01T12:00:04Z",
             "content": "plain"},
        ],
    }],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Ann sails.", "limit": 2000},
        {"id": "block-1", "label": "persona", "value": "I am brief."},
    ],
    "files": [], "groups": [], "sources": [], "tools": [], "mcp_servers": [],
    "created_at": "2026-06-01T12:00:00Z",
}  # fmt: skip


def test_letta_agents_bring_conversations_and_blocks():
    """What was said is unpacked; the block `human` is the person's, others the agent's."""
    found = taken("letta", LETTA)
    assert turns(found) == [
        ("Hello", "Hi Ann", "letta:Skipper", 0, "me", "Skipper", NOON),
        ("plain", "", "letta:Skipper", 1, "me", "Skipper", NOON + 4_000),
    ]
    assert writes(found) == [
        ("add", "user", "Ann sails.", "", "me", "Skipper", NOON),
        ("add", "memory", "I am brief.", "", "me", "Skipper", NOON),
    ]
    ((lost),) = found.refused
    assert (lost.what, lost.why) == ("f: block block-9", "it has no 'label'")


KEPT = [
    {"text": "Hello", "agent": "a", "user": "ann", "kind": "user", "session": "s", "at": NOON,
     "speaker": "Ann", "event": "e1", "workspace": "boat"},
    {"text": "Hi Ann", "agent": "a", "user": "ann", "kind": "assistant", "session": "s", "at": NOON,
     "speaker": "Skipper", "event": "e1", "workspace": "boat"},
    {"text": "Hi", "agent": "a", "user": "bob", "kind": "user", "session": "s", "at": NOON},
    {"text": "Ann sails", "user": "ann", "kind": "memory", "at": NOON, "event": "e2"},
    {"text": "Ann rows", "user": "ann", "kind": "memory", "at": NOON, "until": NOON + 5},
    {"text": "Be brief", "agent": "a"},
    {"text": "Ann", "agent": "a", "user": "ann", "kind": "speaker"},
]  # fmt: skip


def test_what_a_provider_keeps_comes_in_as_it_was_said():
    """Turns become turns, two people's sessions of one id stay two, and the rest is memories."""
    found = taken("memorybus", KEPT)
    assert turns(found) == [
        ("Hello", "Hi Ann", "memorybus:a/boat/ann/s", 0, "ann", "a", NOON),
        ("Hi", "", "memorybus:a/bob/s", 0, "bob", "a", NOON),
    ]
    assert writes(found) == [
        ("add", "memory", "Be brief", "", "me", "a", 0),
        ("add", "user", "Ann sails", "", "ann", "pilot", NOON),
        ("add", "user", "Ann rows", "", "ann", "pilot", NOON),
        ("remove", "user", "", "Ann rows", "ann", "pilot", NOON + 5),
    ]
    assert {one.scope.workspace for one in found.envelopes} == {"boat"}


SAMPLES = {
    "mem0": MEM0, "honcho": HONCHO, "hindsight": HINDSIGHT, "mentisdb": MENTISDB, "zep": ZEP,
    "letta": LETTA, "memorybus": {"memories": KEPT},
}  # fmt: skip


@pytest.mark.parametrize("source", PARSERS)
def test_twice_gives_the_same_ids_and_each_id_one_event(source):
    """G2: reading an export again adds nothing, and no event takes another's id."""
    first, second = (taken(source, SAMPLES[source]) for _ in range(2))
    ids = [one.id for one in first.envelopes]
    assert len(ids) == len(set(ids)) > 1
    assert first == second
    assert {one.scope.platform for one in first.envelopes} == {source}


@pytest.mark.parametrize("source", PARSERS)
def test_recall_in_a_text_is_not_remembered(source):
    """What another memory injected into a prompt does not come back as something said."""
    fence = "<memory-context>old recall</memory-context>"
    dirty = json.dumps(SAMPLES[source]).replace("Ann", fence + "Ann")
    told = [one.event for one in taken(source, dirty.encode()).envelopes]
    assert "old recall" not in repr(told)


BAD = [
    ("mem0", {"id": "1"}, "no 'memory'"),
    ("mem0", {"memory": "x"}, "no 'id'"),
    ("mem0", {"id": "1", "memory": {"x": 1}}, "'memory' must be a text, not dict"),
    ("mem0", {"id": "1", "memory": "x", "created_at": "noon"}, "'created_at'"),
    ("mem0", {"id": "1", "memory": "x", "user_id": "u" * 600}, "user: "),
    ("honcho", {"id": "1", "content": "x", "peer_id": "p"}, "no 'session_id'"),
    ("honcho", {"id": "1", "content": "x", "observed_id": "p"}, "no 'observer_id'"),
    ("hindsight", {"id": "1", "date": ""}, "no 'text'"),
    ("hindsight", {"id": [1], "text": "x"}, "'id' must be a text"),
    ("mentisdb", {"id": "1", "content": "x", "relations": 3}, "'relations' must be a list"),
    ("mentisdb", {"content": "x"}, "no 'id'"),
    ("zep", {"uuid": "1", "content": "x"}, "no 'role_type' or 'role'"),
    ("zep", {"fact": "x"}, "no 'uuid'"),
    ("memorybus", {"at": 1}, "no 'text'"),
]


@pytest.mark.parametrize(("source", "record", "why"), BAD)
def test_a_bad_record_is_named_and_the_others_go_on(source, record, why):
    """A record that is not as its source documents it costs nothing but itself."""
    lists = [one for one in SAMPLES[source].values() if isinstance(one, list)]
    others = [one for some in lists for one in some]
    found, without = taken(source, [record, *others]), taken(source, others)
    ((refusal),) = found.refused
    assert why in refusal.why
    assert refusal.what in ("f: item 1", "f: 1")
    assert len(found.envelopes) == len(without.envelopes) > 1


def letta_agent(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an agent file with one agent, whose messages are numbered."""
    numbered = [{"id": n, "created_at": NOON} | one for n, one in enumerate(messages)]
    return {"agents": [{"name": "Skipper", "messages": numbered} | more]}


def call(tool: str, **arguments: str) -> dict[str, Any]:
    """Return a call of a tool."""
    return {"function": {"name": tool, "arguments": json.dumps(arguments)}}


HELLO = {"role": "user", "content": "Hello"}
MUSING = [{"type": "text", "text": "She sounds annoyed."}]


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([call("core_memory_append", label="human")], ""),
        (
            [call("send_message", message="One."), call("send_message", message="Two.")],
            "One.\n\nTwo.",
        ),
        ([call("archival_memory_search"), call("send_message", message="One.")], "One."),
        ([{"function": {"name": "send_message", "arguments": {"message": "One."}}}], "One."),
        ([], "She sounds annoyed."),
    ],
)
def test_letta_says_what_it_sends_and_keeps_its_monologue(calls, said):
    """Content beside a call of a tool is never said aloud; all messages that are sent are."""
    answer = {"role": "assistant", "content": MUSING, "tool_calls": calls}
    found = taken("letta", letta_agent(HELLO, answer))
    assert [(user, assistant) for user, assistant, *_ in turns(found)] == [("Hello", said)]
    assert found.left_out.dropped == ({"reasoning": 1} if calls else {})


def test_a_letta_agent_of_the_later_kind_speaks_beside_its_tools():
    """Its content is said, and its reasoning is a part of its own."""
    answer = {"role": "assistant", "tool_calls": [call("web_search")],
              "content": [{"type": "reasoning", "reasoning": "hm"}, *MUSING]}  # fmt: skip
    found = taken("letta", letta_agent(HELLO, answer, agent_type="letta_v1_agent"))
    assert turns(found)[0][:2] == ("Hello", "She sounds annoyed.")


@pytest.mark.parametrize(
    ("name", "value", "end"),
    [
        ("expiration_date", "2020-01-01", IN_2020),
        ("invalid_at", "2020-01-01T00:00:00Z", IN_2020),
        ("expired_at", IN_2020, IN_2020),
        ("valid_until", IN_2020 // 1_000, IN_2020),
        ("expiration_date", "2999-01-01", None),
        ("expiration_date", None, None),
    ],
)
@pytest.mark.parametrize("source", ["mem0", "zep", "mentisdb", "hindsight", "honcho"])
def test_a_memory_ends_when_its_source_says(source, name, value, end):
    """What ceased to be true is removed at that time, whatever the source calls it."""
    record = MEMORIES[source] | {name: value}
    removals = [one for one in writes(taken(source, [record])) if one[0] == "remove"]
    assert [one[-1] for one in removals] == ([] if end is None else [end])


MEMORIES: dict[str, dict[str, Any]] = {
    "mem0": {"id": 1, "memory": "Ann sails", "created_at": "2019-01-01"},
    "zep": {"uuid": 1, "fact": "Ann sails", "valid_at": "2019-01-01"},
    "mentisdb": {"id": 1, "content": "Ann sails", "timestamp": "2019-01-01"},
    "hindsight": {"id": 1, "text": "Ann sails", "date": "2019-01-01"},
    "honcho": {"id": 1, "content": "Ann sails", "observer_id": "a", "observed_id": "ann",
               "created_at": "2019-01-01"},
}  # fmt: skip


@pytest.mark.parametrize("source", MEMORIES)
def test_ids_may_be_numbers_and_times_before_1970(source):
    """A number is an id like any other, and what began before all logs began with them."""
    record = MEMORIES[source]
    (added,) = taken(source, [record]).envelopes
    assert added.event.provenance["source_id"] == "1"
    (time,) = (name for name in record if record[name] == "2019-01-01")
    assert writes(taken(source, [record | {time: "1954-05-01"}]))[0][-1] == 0


def test_naive_times_of_an_export_are_in_the_zone_of_the_settings():
    """A date without a zone begins when it does where the person is."""
    data = json.dumps([MEMORIES["mem0"]]).encode()
    parsed = PARSERS["mem0"](Export(data, "f", timezone(timedelta(hours=8))))
    assert parsed.memories[0].at == 1_546_272_000_000


def test_what_a_memory_cannot_be_is_counted():
    """Relations and other lists beside the memories are dropped, and the report says so."""
    graph = [{"source": "ann", "relationship": "sails", "target": "boat"}] * 3
    found = taken("mem0", {"results": [MEMORIES["mem0"]], "relations": graph})
    assert (len(found.envelopes), found.left_out.dropped) == (1, {"relations": 3})


def test_what_is_around_messages_counts_for_them():
    """A thread names its session and its person once, for all of its messages."""
    thread = {"thread_id": "th", "user_id": "ann", "messages": [
        {"uuid_": "m1", "role": "user", "content": "Hello", "created_at": NOON},
        {"uuid_": "m2", "role": "assistant", "content": "Hi", "created_at": NOON},
    ]}  # fmt: skip
    found = taken("zep", {"threads": [thread]})
    assert turns(found) == [("Hello", "Hi", "zep:th", 0, "ann", "pilot", NOON)]


def test_a_torn_line_of_an_export_costs_itself():
    """The records before it are used, and it is named with its place."""
    found = taken("mem0", json.dumps(MEMORIES["mem0"]).encode() + b'\n{"id": 2, "mem')
    assert len(found.envelopes) == 1
    assert [one.place for one in found.refused] == ["f:2"]


def test_a_named_speaker_may_be_a_person_of_their_own():
    """With --user-from-name a message of nobody in particular belongs to the name it bears."""
    said = [("Ann", "user", "Hi"), ("Skipper", "assistant", "Hello"), ("Bob", "user", "Me, too")]
    messages = [
        {"uuid": n, "role_type": role, "role": name, "content": text, "session_id": "s"}
        for n, (name, role, text) in enumerate(said)
    ]
    owner = ImportOwner(Scope(user="me"), user_from_name=True)
    assert [(t[0], t[4]) for t in turns(taken("zep", messages, owner))] == [
        ("Hi", "Ann"),
        ("Me, too", "Bob"),
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("source", PARSERS)
@given(data=st.data())
@pytest.mark.slow(reason="generates exports")
def test_no_value_of_a_field_refuses_an_export(source, data):
    """Whatever a field of one record holds, the other records are used."""
    sample = json.loads(json.dumps(SAMPLES[source]))
    places = [sample, *(one for held in sample.values() if isinstance(held, list) for one in held)]
    inner = [
        one for place in places for held in place.values() if isinstance(held, list) for one in held
    ]
    record = data.draw(
        st.sampled_from([one for one in (*places[1:], *inner) if isinstance(one, dict)])
    )
    record[data.draw(st.sampled_from([*record, "relations", "expired_at"]))] = data.draw(
        json_values
    )
    assert taken(source, json.dumps(sample).encode()).envelopes


@pytest.mark.parametrize("source", PARSERS)
@given(data=st.binary(max_size=100) | json_values.map(lambda value: json.dumps(value).encode()))
@pytest.mark.slow(reason="generates exports")
def test_garbage_is_no_export(source, data):
    """No bytes raise anything but the one clear error with the file's name."""
    try:
        named = [one.why for one in taken(source, data).refused]
    except ForeignError as error:
        named = [str(error)]
    assert all(why for why in named)


@pytest.mark.parametrize(("source", "name"), [("hindsight", "total"), ("honcho", "pages")])
@pytest.mark.parametrize("count", [None, "2", 1.5])
def test_a_count_that_is_no_number_is_refused_by_its_name(source, name, count):
    """A service is another program: what it answers is checked before it is used."""
    pages = SOURCES[source].pages(lambda path, body=None: {"items": [{"id": "x"}], name: count})
    with pytest.raises(ForeignError, match=name):
        list(pages)


def test_an_address_is_told_from_a_file():
    """Only http and https are addresses; one that cannot be read is refused with the reason."""
    assert [is_address(text) for text in ("HTTP://a", "https://b", "c:/d", "e.json")] == [
        True, True, False, False,
    ]  # fmt: skip
    with pytest.raises(ForeignError, match="not an address"):
        ForeignService("http://[x", {})
