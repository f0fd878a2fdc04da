"""Names: what facts say of one, which names stand beside it, and what connects several."""

from typing import Any

import pytest
from memorybus.events import Scope
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import add, context, feed, texts, turn


def call(provider: HolographicProvider, tool: str, scope: Scope | None = None, **given: Any) -> Any:
    """Call a tool and return its result."""
    ctx = context(900) if scope is None else context(900, scope)
    return provider.handle_tool_call(tool, given, ctx)


def probed(provider: HolographicProvider, entity: str, scope: Scope | None = None) -> set[str]:
    """Return the texts that a probe finds."""
    result = call(provider, "memory_probe", scope, entity=entity)
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

    found = call(provider, "memory_probe", entity="Ana")["results"]

    assert [one["text"] for one in found] == [
        "Ana is allergic to nuts",
        "Ana has moved",
        "Ana plays the cello",
    ]
    assert len(call(provider, "memory_probe", entity="Ana", limit=1)["results"]) == 1


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

    related = call(provider, "memory_related", entity="Ana")["related"]

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

    pair = call(provider, "memory_reason", entities=["Ana", "Zoe"])
    three = call(provider, "memory_reason", entities=["Ana", "Piet", "Zoe"])["results"]

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
        call(provider, "memory_search", query=before[-1], limit=1)

    assert texts(provider, "size seven red box") == before[::-1]
