"""Entities: who a name stands for, and what facts say of one, of what goes with it, of several."""

from typing import Any

import pytest
from memorybus.events import Scope
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.language.mentions import mentions, names_any, role_statements, words
from unit.holographic.holographic_feeding import add, context, feed, texts, turn


def call(provider: HolographicProvider, tool: str, scope: Scope | None = None, **given: Any) -> Any:
    """Call a tool and return its result."""
    ctx = context(900) if scope is None else context(900, scope)
    return provider.handle_tool_call(tool, given, ctx)


def probed(provider: HolographicProvider, entity: str) -> set[str]:
    """Return the texts that a probe finds."""
    return {one["text"] for one in call(provider, "memory_probe", entity=entity)["results"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("There we met Inga Okoro at the pool", ["Inga Okoro"]),
        ("Prof. Lindqvist called. The lift broke", ["Lindqvist"]),
        ("I like May and Ludwig van Beethoven's songs on Monday", ["Ludwig van Beethoven"]),
        ("It was J. R. Brandt who knew", ["J. R. Brandt"]),
        ("nothing here", []),
    ],
)
def test_names_are_runs_of_capitals(text: str, found: list[str]) -> None:
    """Titles, stop words, months and weekdays are no part of a name; particles are."""
    assert [mention.name for mention in mentions(text)] == found


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("My sister Ana came", ("", "sister", "Ana")),
        ("my older brother, Piet, came", ("", "older brother", "Piet")),
        ("Our landlord is called Iwan Petrov", ("", "landlord", "Iwan Petrov")),
        ("Ana is my sister", ("", "sister", "Ana")),
        ("Tom's wife Inga sings", ("tom", "wife", "Inga")),
        ("I asked about your boss Karim", ("you", "boss", "Karim")),
        ("meine Schwester Ana kommt", ("", "schwester", "Ana")),
        ("mi hermana se llama Ana", ("", "hermana", "Ana")),
        ("моя сестра Анна пришла", ("", "сестра", "Анна")),
    ],
)
def test_a_role_tells_a_name(text: str, who: tuple[str, str, str]) -> None:
    """A possessive, a role and a name say who somebody is to whom."""
    assert [(one.owner, one.role, one.name) for one in role_statements(text)][:1] == [who]


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("Martha came", True),
        ("Yesterday Martha came", True),
        ("We saw Martha Jones", False),
        ("Martha Jones came", False),
        ("martha came", True),
        ("the marthas came", False),
    ],
)
def test_a_part_of_another_name_is_not_meant(text: str, is_named: bool) -> None:
    """An alias counts where it stands alone, not within somebody else's name."""
    assert names_any(text, [words("Martha")]) is is_named


def test_a_full_name_its_parts_and_a_title_are_one(provider: HolographicProvider) -> None:
    """Each of them finds what was said under the others."""
    feed(
        provider,
        [
            turn("We hired Martha Keller for the roof"),
            turn("Then Dr. Keller found the leak"),
            turn("I paid Martha in cash"),
            turn("The roof is dry"),
        ],
    )
    everything = {
        "We hired Martha Keller for the roof",
        "Then Dr. Keller found the leak",
        "I paid Martha in cash",
    }

    for entity in ("Martha Keller", "Dr. Keller", "martha", "Keller"):
        assert probed(provider, entity) == everything, entity
    known = call(provider, "memory_probe", entity="Keller")["entity"]
    assert (known["name"], known["kind"]) == ("Martha Keller", "person")
    assert {"Martha", "Keller"} <= set(known["aliases"])


def test_a_part_that_two_share_stands_for_both(provider: HolographicProvider) -> None:
    """Of two people with one surname, a first name finds one of them, the surname both."""
    feed(
        provider,
        [
            turn("We hired Martha Keller"),
            turn("Her cousin is our neighbour Tom Keller"),
            turn("I paid Martha"),
        ],
    )

    assert probed(provider, "Martha Keller") == {"We hired Martha Keller", "I paid Martha"}
    assert probed(provider, "Tom Keller") == {"Her cousin is our neighbour Tom Keller"}
    assert len(probed(provider, "Keller")) == 2


def test_a_role_once_told_is_a_name(provider: HolographicProvider) -> None:
    """ "my sister" is who was told to be, last; whose it is matters, and the scope."""
    feed(
        provider,
        [
            turn("I had lunch with my sister Ana", "How is your sister?", user_name="Jo Bell"),
            turn("Ana paints boats"),
            turn("And my friend's sister Eva sails"),
        ],
    )

    assert {"Ana paints boats", "I had lunch with my sister Ana"} == probed(provider, "my sister")
    assert "Ana paints boats" in probed(provider, "Jo's sister")
    entity = call(provider, "memory_probe", entity="my sister")["entity"]
    assert (entity["name"], entity["kind"], entity["roles"]) == ("Ana", "person", ["my sister"])
    stranger = Scope(agent="coder", user="zoe")
    assert call(provider, "memory_probe", stranger, entity="my sister")["results"] == []


def test_a_role_is_forgotten_with_the_turn_that_told_it(provider: HolographicProvider) -> None:
    """Nothing is known of a name any more once the turns that told of it are taken back."""
    feed(provider, [turn("My sister Ana sings")])
    ctx = context(1)
    provider.retract([ctx.event_id], context(2))

    assert call(provider, "memory_probe", entity="my sister")["results"] == []


@pytest.mark.parametrize(
    ("text", "entity", "kind"),
    [
        ("We saw Prof. Lindqvist", "Lindqvist", "person"),
        ("My dog Rex barks", "Rex", "dog"),
        ("She studies in Uppsala", "Uppsala", "place"),
        ("They bought Brandt GmbH", "Brandt GmbH", "organisation"),
        ("He uses Zephyr daily", "Zephyr", "other"),
    ],
)
def test_kinds(text: str, entity: str, kind: str, provider: HolographicProvider) -> None:
    """What an entity is follows from its title, its role, its name and what stands before it."""
    feed(provider, [turn(text)])

    assert call(provider, "memory_probe", entity=entity)["entity"]["kind"] == kind


def test_a_probe_puts_what_was_kept_first(provider: HolographicProvider) -> None:
    """Kept facts, then what was said of somebody, newest first, then what they said themselves."""
    feed(
        provider,
        [
            turn("Ana plays the cello"),
            add("Ana is allergic to nuts"),
            turn("It rains", "Ana has moved", user_name="Ana"),
        ],
    )

    found = call(provider, "memory_probe", entity="Ana")["results"]

    assert [one["text"] for one in found] == [
        "Ana is allergic to nuts",
        "Ana has moved",
        "Ana plays the cello",
        "It rains",
    ]
    assert len(call(provider, "memory_probe", entity="Ana", limit=1)["results"]) == 1


def test_related_tells_what_goes_with_somebody(provider: HolographicProvider) -> None:
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


def test_reason_connects_entities(provider: HolographicProvider) -> None:
    """Facts that name several of them, the most first; and names that stand with each of them."""
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


def test_a_question_about_a_role_is_one_about_the_name(provider: HolographicProvider) -> None:
    """Once told who "my sister" is, a question about her finds what was said of the name."""
    said = ("My older sister Ana sings", "Ana came in March", "Piet came in June")
    for n, text in enumerate(said, start=1):
        feed(provider, [turn(text)], first=n, session=f"s{n}")

    for question in ("When did my sister come?", "When did my older sister come?"):
        found = texts(provider, question)
        assert found.index("Ana came in March") < found.index("Piet came in June"), question


def test_what_tools_listed_often_wins_between_equals(provider: HolographicProvider) -> None:
    """A fact that was listed again and again comes before its equal, whatever the number."""
    feed(
        provider,
        [add("Bolts of size seven in the red box"), add("Nuts of size seven in a red box")],
    )
    before = texts(provider, "size seven red box")

    for _ in range(20):
        call(provider, "memory_search", query=before[-1], limit=1)

    assert texts(provider, "size seven red box") == before[::-1]
