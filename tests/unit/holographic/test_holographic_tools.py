"""The model's tools: what they accept, what they do, that they do it once."""

import json
from typing import Any

import msgspec
import pytest
from memorybus.events import ToolCalled
from memorybus.ids import text_digest
from memorybus_providers.base import Fence, ProviderConfig
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import (
    LANE,
    add,
    check_index,
    context,
    feed,
    opened,
    shown,
    stored,
    texts,
    turn,
)

NOBODYS = "00c0ffee00c0de"
"""An id that no fact has."""


def call(provider: HolographicProvider, tool: str, n: int = 100, **arguments: Any) -> Any:
    """Call a tool and return its result as it arrives after JSON."""
    return json.loads(msgspec.json.encode(provider.handle_tool_call(tool, arguments, context(n))))


def test_schemas_need_no_open_database(tmp_path):
    """The tools are described before `open`, as OpenAI function objects."""
    provider = HolographicProvider(ProviderConfig(name="holographic", home=tmp_path))

    schemas = {schema["name"]: schema for schema in provider.get_tool_schemas()}

    assert {"memory_search", "memory_add", "memory_feedback", "session_search"} <= set(schemas)
    assert json.loads(json.dumps(schemas)) == schemas
    for schema in schemas.values():
        assert schema["description"]
        assert schema["parameters"]["type"] == "object"
        assert all("description" in one for one in schema["parameters"]["properties"].values())
    assert schemas["memory_feedback"]["parameters"]["required"] == ["fact_id", "helpful"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("memory_search", {}, "query"),
        ("memory_search", {"query": ""}, "query"),
        ("memory_search", {"query": "tea", "limit": 0}, "limit"),
        ("memory_search", {"query": "tea", "limit": "3"}, "limit"),
        ("memory_search", {"query": 7}, "query"),
        ("memory_search", {"query": "tea", "depth": 2}, "depth"),
        ("memory_add", {"content": " \n"}, "content"),
        ("memory_add", {"content": "x" * 10_001}, "content"),
        ("memory_add", {"content": "tea", "tags": "hot"}, "tags"),
        ("memory_feedback", {"fact_id": NOBODYS}, "helpful"),
        ("memory_feedback", {"fact_id": 1, "helpful": True}, "fact_id"),
        ("memory_feedback", {"fact_id": "1", "helpful": True}, "fact_id"),
        ("memory_feedback", {"fact_id": f"{NOBODYS}-", "helpful": True}, "fact_id"),
        ("memory_feedback", {"fact_id": NOBODYS.upper(), "helpful": True}, "fact_id"),
        ("memory_feedback", {"fact_id": NOBODYS, "helpful": "yes"}, "helpful"),
        ("memory_feedback", {"fact_id": NOBODYS, "helpful": True}, f"no fact {NOBODYS}: give"),
        ("memory_feedback", {"fact_id": f"{NOBODYS}-1", "helpful": True}, "memory_search"),
        ("memory_dream", {}, "memory_search"),
        ("memory_probe", {"entity": " "}, "entity"),
        ("memory_related", {}, "entity"),
        ("memory_reason", {"entities": ["Ana"]}, "entities"),
        ("memory_list", {"min_trust": 2}, "min_trust"),
        ("session_search", {"query": "tea", "around": 99}, "around"),
    ],
)
def test_wrong_arguments_are_answered(tool, arguments, named, provider):
    """A call that cannot be run says why, in words the model can act on, and does nothing."""
    result = call(provider, tool, **arguments)

    assert result["ok"] is False
    assert named in result["error"]
    assert stored(provider) == []


def test_search_shows_what_is_known_of_a_fact(provider):
    """A result carries the text and everything needed to judge it."""
    feed(provider, [turn("The key is under the mat", user_name="Ann")], at=0)

    result = call(provider, "memory_search", query="Where is the key?")

    assert result == {
        "ok": True,
        "results": [
            {
                "id": f"{text_digest('s1')[:4]}{context(1).event_id[-10:]}-0",
                "text": "The key is under the mat",
                "kind": "user",
                "speaker": "Ann",
                "session": "s1",
                "at": "1970-01-01T00:00:00+00:00",
                "trust": 0.5,
                "category": "",
                "tags": [],
            }
        ],
    }


def test_search_counts_retrievals(provider):
    """Each fact a search returned is counted once per search."""
    feed(provider, [add("tea at four"), add("milk at six")])

    call(provider, "memory_search", query="tea")
    call(provider, "memory_search", query="tea")

    assert [row[6] for row in stored(provider)] == [2, 0]


def test_search_does_not_wait_for_a_writer(tmp_path):
    """While a lane writes, a search in another process answers; only its count is left out."""
    with opened(tmp_path) as writer, opened(tmp_path) as reader:
        feed(writer, [add("tea at four")])
        with writer.transaction(Fence(LANE, 1)):
            result = call(reader, "memory_search", query="tea")

        assert [found["text"] for found in result["results"]] == ["tea at four"]
        assert [row[6] for row in stored(writer)] == [0]


def test_search_is_limited_and_narrowed(provider):
    """`limit` bounds the results; `about` keeps a speaker's words and notes that name it."""
    feed(
        provider,
        [
            turn("I drink tea", "Tea is fine", user_name="Ann Lee", assistant_name="Bob"),
            add("We drink tea with Carla Bruni on Mondays"),
            add("Nobody drinks tea alone"),
        ],
    )

    def found(**more: Any) -> set[str]:
        result = call(provider, "memory_search", query="drink tea", **more)
        return {fact["text"] for fact in result["results"]}

    assert len(found(limit=2)) == 2
    assert found(about="ann") == {"I drink tea"}
    assert found(about="BOB") == {"Tea is fine"}
    assert found(about="Carla Bruni") == {"We drink tea with Carla Bruni on Mondays"}
    assert found(about="Dora") == set()


def test_add_keeps_a_note_that_is_found_by_its_tags(provider):
    """A note is recalled by its words and its tags, and filed as the model said."""
    result = call(
        provider, "memory_add", content="Deploy on Fridays", category="rules", tags=["release"]
    )
    found = call(provider, "memory_search", query="release")["results"]

    assert [(f["text"], f["kind"], f["category"], f["tags"]) for f in found] == [
        ("Deploy on Fridays", "note", "rules", ["release"])
    ]
    assert result == {"ok": True, "id": found[0]["id"]}
    assert texts(provider, "release") == ["Deploy on Fridays"]
    check_index(provider)


def test_writing_tools_take_effect_once(provider):
    """The same event id changes nothing a second time and gets the first answer (G4)."""
    added = call(provider, "memory_add", n=1, content="tea")
    judged = call(provider, "memory_feedback", n=2, fact_id=added["id"], helpful=True)
    before = stored(provider)

    assert call(provider, "memory_add", n=1, content="tea") == added
    again = call(provider, "memory_feedback", n=2, fact_id=added["id"], helpful=True)
    assert again == judged == {"ok": True, "id": added["id"], "trust": 0.55}
    assert stored(provider) == before


@pytest.mark.parametrize(
    ("judgements", "trust", "helpful"),
    [
        ([True], 0.55, 1),
        ([False], 0.4, 0),
        ([True, False], 0.45, 1),
        ([True] * 15, 1.0, 15),
        ([False] * 8, 0.0, 0),
    ],
)
def test_feedback_moves_trust(judgements, trust, helpful, provider):
    """Helpful adds 0.05, unhelpful takes 0.10, within 0 and 1; helpful ones are counted."""
    feed(provider, [add("tea")])
    (fact,) = shown(provider, "tea")

    for n, judgement in enumerate(judgements):
        answer = call(provider, "memory_feedback", n=200 + n, fact_id=fact["id"], helpful=judgement)

    assert answer == {"ok": True, "id": fact["id"], "trust": trust}
    assert [found["trust"] for found in shown(provider, "tea")] == [trust]
    assert stored(provider)[0][7] == helpful


def test_a_tool_call_in_the_log_is_applied_with_its_batch(provider):
    """In a lane a tool sees what came before it, and takes effect once in the same transaction."""
    events = [
        turn("The heron is grey"),
        ToolCalled(provider="holographic", tool="memory_search", arguments={"query": "heron"}),
        ToolCalled(provider="holographic", tool="memory_add", arguments={"content": "grey heron"}),
        ToolCalled(provider="builtin", tool="memory_add", arguments={"content": "not ours"}),
    ]
    replies = feed(provider, events)
    before = stored(provider)
    feed(provider, events)

    assert json.loads(replies[1] or "")["results"][0]["text"] == "The heron is grey"
    assert [row[0] for row in before] == ["The heron is grey", "grey heron"]
    assert stored(provider) == before
