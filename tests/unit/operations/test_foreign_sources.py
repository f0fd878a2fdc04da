"""Exports of other memories become events: a table for each source, in its documented shape."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from memorybus.events import MemoryWritten, Scope, SessionStarted, TurnCompleted
from memorybus.operations.ingest.foreign.enveloping import Enveloped, Owner, enveloped
from memorybus.operations.ingest.foreign.model import ForeignError
from memorybus.operations.ingest.foreign.sources import PARSERS

OURS = Owner(Scope(agent="pilot", user="me", workspace="boat"))
NOON = 1_780_315_200_000  # 2026-06-01T12:00:00Z


def taken(source: str, value: Any, owner: Owner = OURS) -> Enveloped:
    """Return the events of an export, all at midnight of 1970 where it does not tell."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return enveloped(source, "f", PARSERS[source](data, "f"), owner, 0)


def writes(found: Enveloped) -> list[tuple[Any, ...]]:
    """Return what memory writes say: action, store, text, old text, user, agent, time."""
    return [
        (e.action, e.store, e.content, e.old_text, one.scope.user, one.scope.agent, one.at)
        for one in found.envelopes
        if isinstance(e := one.event, MemoryWritten)
    ]


def turns(found: Enveloped) -> list[tuple[Any, ...]]:
    """Return what turns say: both sides, session, ordinal, user, agent, time."""
    return [
        (e.user, e.assistant, one.session.id, e.ordinal, one.scope.user, one.scope.agent, one.at)
        for one in found.envelopes
        if isinstance(e := one.event, TurnCompleted)
    ]


def begun(found: Enveloped) -> Sequence[tuple[str, str]]:
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
            "metadata": {"category": "travel"},
        },
        {"id": "2", "memory": "Answer briefly", "agent_id": "skipper", "created_at": None},
        {"id": "3", "memory": " ", "user_id": "ann"},
    ]
}


def test_mem0_memories_are_written_to_their_owners() -> None:
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
    assert anns.event.provenance == {  # type: ignore[union-attr]
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
def test_the_same_memories_in_any_form_are_the_same_events(form: Any) -> None:
    """G2: an id depends on source, kind, own id and text alone."""
    assert taken("mem0", form) == taken("mem0", MEM0)


def test_a_changed_memory_is_a_new_event() -> None:
    """What a source changed since comes as a new memory: nothing of it is lost."""
    first, second = ({"id": "1", "memory": text} for text in ("old", "new"))
    ids = {taken("mem0", [one]).envelopes[0].id for one in (first, second, first)}
    assert len(ids) == 2


def test_named_owners_go_before_the_sources() -> None:
    """--user and --agent decide, whatever the source says."""
    found = taken("mem0", MEM0, Owner(Scope(), agent="a", user="u"))
    assert {(one.scope.agent, one.scope.user) for one in found.envelopes} == {("a", "u")}


@pytest.mark.parametrize("source", PARSERS)
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{oops", "f:1: not JSON"),
        (b'{"a": 1}\n{oops', "f:2: not JSON"),
        (b"[1]", "item 1: expected an object"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_export_is_refused_whole(source: str, data: bytes, why: str) -> None:
    """A file that is not JSON, or not one of objects, is refused with its place."""
    with pytest.raises(ForeignError, match=why):
        taken(source, data)


BAD = [
    ("mem0", {"id": "1"}, "no 'memory'"),
    ("mem0", {"memory": "x"}, "no 'id'"),
    ("mem0", {"id": "1", "memory": {"x": 1}}, "'memory' must be a text, not dict"),
    ("mem0", {"id": "1", "memory": "x", "created_at": "noon"}, "'created_at'"),
    ("mem0", {"id": "1", "memory": "x", "user_id": "u" * 600}, "user: "),
]


@pytest.mark.parametrize(("source", "record", "why"), BAD)
def test_a_bad_record_is_named_and_the_others_go_on(
    source: str, record: dict[str, Any], why: str
) -> None:
    """A record that is not as its source documents it costs nothing but itself."""
    found = taken(source, [record, *MEM0["results"]])
    ((refusal),) = found.refused
    assert why in refusal.why
    assert refusal.what in ("f: item 1", "f: 1")
    assert len(found.envelopes) == 2
