"""The model's tools: what they accept, what they do, that they do it once."""

import json
from typing import Any

import msgspec
import pytest
from memorybus.events import Event, Scope, ToolCalled
from memorybus.ids import text_digest
from memorybus_providers.base import Fence, ProviderConfig
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import (
    DAY,
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


def told(provider: HolographicProvider, tool: str, scope: Scope | None = None, **given: Any) -> Any:
    """Call a tool and return its result."""
    ctx = context(900) if scope is None else context(900, scope)
    return provider.handle_tool_call(tool, given, ctx)


def probed(provider: HolographicProvider, entity: str, scope: Scope | None = None) -> set[str]:
    """Return the texts that a probe finds."""
    result = told(provider, "memory_probe", scope, entity=entity)
    return {one["text"] for one in result["results"]}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Martha Keller", {"We hired Martha Keller for the roof"}),
        ("keller", {"We hired Martha Keller for the roof", "Then Dr. Keller found the leak"}),
        ("Dr. Keller", {"Then Dr. Keller found the leak"}),
        ("my sister", {"I met my sister Éva"}),
        ("Eva", {"I met my sister Éva"}),
        ("Keller Martha", set()),
        ("Zoe", set()),
    ],
)
def test_a_name_counts_as_it_is_written(name, found, provider):
    """The words of a name are found side by side, whatever their case, and nothing is guessed."""
    feed(
        provider,
        [
            turn("We hired Martha Keller for the roof"),
            turn("Then Dr. Keller found the leak"),
            turn("I met my sister Éva"),
        ],
    )

    assert probed(provider, name) == found


def test_a_name_is_found_in_its_scope_until_it_is_taken_back(provider):
    """Another person is shown nothing of it, and nobody is once its turn is taken back."""
    feed(provider, [turn("Ana sings")])

    assert probed(provider, "Ana") == {"Ana sings"}
    assert probed(provider, "Ana", Scope(agent="coder", user="zoe")) == set()
    provider.retract([context(1).event_id], context(2))
    assert probed(provider, "Ana") == set()


def test_a_probe_puts_what_was_kept_first(provider):
    """Kept facts come first, then what was said, newest first."""
    feed(
        provider,
        [turn("Ana plays the cello"), add("Ana is allergic to nuts"), turn("", "Ana has moved")],
    )

    found = told(provider, "memory_probe", entity="Ana")["results"]

    assert [one["text"] for one in found] == [
        "Ana is allergic to nuts",
        "Ana has moved",
        "Ana plays the cello",
    ]
    assert len(told(provider, "memory_probe", entity="Ana", limit=1)["results"]) == 1


def test_related_tells_what_goes_with_somebody(provider):
    """Names in the same facts, the most frequent first, each with its newest fact."""
    feed(
        provider,
        [
            turn("I saw Ana with Piet in Rome"),
            turn("Then Ana and Piet quarrelled"),
            turn("Nobody saw Zoe"),
        ],
    )

    related = told(provider, "memory_related", entity="Ana")["related"]

    assert [(one["name"], one["facts"]) for one in related] == [("Piet", 2), ("Rome", 1)]
    assert related[0]["newest"]["text"] == "Then Ana and Piet quarrelled"


def test_reason_connects_names(provider):
    """Facts that contain several of them, the most first; and names that stand with each."""
    feed(
        provider,
        [
            turn("I heard that Ana joined the harbour board with Piet"),
            turn("We know that Piet sails with Zoe"),
            turn("So Ana, Piet and Zoe met"),
            turn("Last week Ana lent a tent to Quentin"),
            turn("On Sunday Zoe was at the play with Quentin"),
        ],
    )

    pair = told(provider, "memory_reason", entities=["Ana", "Zoe"])
    three = told(provider, "memory_reason", entities=["Ana", "Piet", "Zoe"])["results"]

    assert [one["text"] for one in pair["results"]] == ["So Ana, Piet and Zoe met"]
    through = {one["name"]: [fact["text"] for fact in one["facts"]] for one in pair["through"]}
    assert through["Quentin"] == [
        "Last week Ana lent a tent to Quentin",
        "On Sunday Zoe was at the play with Quentin",
    ]
    assert three[0]["text"] == "So Ana, Piet and Zoe met"
    assert len(three) == 3


def test_what_tools_listed_often_wins_between_equals(provider):
    """A fact that was listed again and again comes before its equal, whatever the number."""
    feed(
        provider,
        [add("Bolts of size seven in the red box"), add("Nuts of size seven in a red box")],
    )
    before = texts(provider, "size seven red box")

    for _ in range(20):
        told(provider, "memory_search", query=before[-1], limit=1)

    assert texts(provider, "size seven red box") == before[::-1]


MONDAY = 1_750_000_000_000


class Model:
    """A model in a session: it reads at once, and writes by events, as the bus has it."""

    def __init__(self, provider: HolographicProvider, session: str, at: int) -> None:
        self.provider = provider
        self.session = session
        self.at = at
        self.events = at // DAY % 1000 * 100

    def hear(self, *events: Event) -> list[str | None]:
        """Apply events of this session."""
        first = self.events + 1
        self.events += len(events)
        return feed(
            self.provider, events, first=first, session=self.session, at=self.at, root=self.session
        )

    def read(self, tool: str, **arguments: Any) -> Any:
        """Call a reading tool."""
        assert tool in self.provider.capabilities.reading_tools
        result = self.provider.handle_tool_call(tool, arguments, context(99_000))
        assert result["ok"] is True
        return result

    def write(self, tool: str, **arguments: Any) -> None:
        """Call a writing tool."""
        assert tool not in self.provider.capabilities.reading_tools
        self.hear(ToolCalled(provider="holographic", tool=tool, arguments=arguments))


def test_a_conversation_with_tools(provider):
    """What the model keeps and is told is found again by every tool that is meant for it."""
    monday = Model(provider, "monday", MONDAY)
    monday.hear(
        turn("I have to plan the regatta with my cousin Ivo Lindt", "When is it?"),
        turn("On the ninth. The boat belongs to the Alster club", "Noted."),
        turn("And Mr. Lindt gets seasick", "Poor him."),
    )
    monday.write(
        "memory_add",
        content="Ivo Lindt brings the spare sails for the regatta",
        category="project",
        tags=["sailing"],
    )

    friday = Model(provider, "friday", MONDAY + 4 * DAY)
    friday.hear(turn("What do we know about my cousin?"))
    cousin = friday.read("memory_probe", entity="Lindt")
    assert [one["text"] for one in cousin["results"]] == [
        "Ivo Lindt brings the spare sails for the regatta",
        "And Mr. Lindt gets seasick",
        "I have to plan the regatta with my cousin Ivo Lindt",
    ]

    (filed,) = friday.read("memory_list", category="project", min_trust=0.5)["results"]
    friday.write("memory_feedback", fact_id=filed["id"], helpful=True)
    assert friday.read("memory_list", min_trust=0.52)["results"][0]["trust"] == 0.55

    friday.write(
        "memory_correct", old_text="brings the spare sails", content="Ivo Lindt brings the anchor"
    )
    sails = "Ivo Lindt brings the spare sails"
    right, rival = friday.read("memory_contradict", statement=sails)["results"]
    assert (right["text"], rival["id"]) == ("Ivo Lindt brings the anchor", filed["id"])
    brought = friday.read("memory_search", query="What does Ivo Lindt bring?")["results"]
    assert (brought[0]["text"], brought[0]["before"]) == (
        "Ivo Lindt brings the anchor",
        "Ivo Lindt brings the spare sails for the regatta",
    )
    assert [one["text"] for one in brought if "until" in one] == [brought[0]["before"]]

    (talk,) = friday.read("session_search", query="Who gets seasick?", around=1)["sessions"]
    assert talk["session"] == "monday"
    assert [(one["text"], one["hit"]) for one in talk["said"]] == [
        ("Noted.", False),
        ("And Mr. Lindt gets seasick", True),
        ("Poor him.", False),
    ]
    assert friday.read("memory_search", query="spare sails", category="tool")["results"] == []
    assert friday.read("memory_search", query="spare sails", min_trust=0.9)["results"] == []
