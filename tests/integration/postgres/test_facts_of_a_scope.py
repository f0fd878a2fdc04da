"""Every question that a store answers about its facts keeps to the asked scope, in both stores."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psycopg
import pytest
from memorybus.events import Derived, Scope
from memorybus_providers.base import RecallScope
from memorybus_providers.finding.source import FactSource, View
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.language.times import Period
from memorybus_providers.postgres import PostgresProvider
from memorybus_providers.postgres.finding import source as statements
from memorybus_providers.ranking.ranking import Fact
from unit.holographic.holographic_feeding import (
    AT,
    DAY,
    EVERYONE,
    ME,
    add,
    context,
    feed,
    opened,
    remove,
    replace,
    turn,
)

OWNERS = (
    ME,
    Scope(agent="coder", user="bob"),
    Scope(agent="other", user="ann"),
    Scope(agent="coder", user="ann", workspace="boat"),
)
"""The asker, and three who differ from it in one part."""
MINE = RecallScope("coder", "ann", "")
VIEW = View(MINE)
EVER = [Period(AT - DAY, AT + DAY)]
OWN = "owner0"

FILL_FACTS = """
insert into facts(id, scope, session, seq, name, event_id, at, kind, speaker, category, tags,
    content)
select n, n % 50, n % 250, n / 250, n::text, '', n, 'user', '', '', '', 'the mill'
from generate_series(1, 12000) as n
"""
Provider = HolographicProvider | PostgresProvider


def tell(provider: Provider, number: int) -> None:
    """Apply what an owner says: the same words in a session of the same name, marked by a number.

    Each has a person of the same name speak, and one of a name of its own.
    """
    mark = f"owner{number}"
    said = f"The ladder of {mark}"
    events = [
        add(f"The ladder was kept by {mark}"),
        replace(f"The ladder was kept by {mark}", f"The ladder is kept by {mark}"),
        turn(said, said, user_name="Maria", assistant_name=f"Nora{number}"),
        Derived(kind="fact", text=f"A ladder of {mark}", sources=(mark,)),
    ]
    first = 1 + 10 * number
    feed(provider, events, first=first, scope=OWNERS[number], session="shared")
    correction = {"old_text": said, "content": f"The ladder is with {mark}"}
    provider.handle_tool_call("memory_correct", correction, context(first + 5, OWNERS[number]))


@pytest.fixture(name="provider", params=["sqlite", "postgres"])
def _provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provider]:
    """Return a store that holds what all owners said."""
    with opened(tmp_path) as sqlite:
        provider: Provider = sqlite
        if request.param == "postgres":
            provider = request.getfixturevalue("postgres_provider")
        for number in range(len(OWNERS)):
            tell(provider, number)
        yield provider


def contents(facts: Iterable[Fact]) -> list[str]:
    return [fact.content for fact in facts]


def rows(facts: Iterable[Fact]) -> list[int]:
    return [fact.id for fact in facts]


def among(found: Iterable[int], everything: Sequence[Fact]) -> list[str]:
    by_row = {fact.id: fact.content for fact in everything}
    return [by_row[row] for row in found]


def matching(source: FactSource, view: View) -> list[int]:
    """Return the rows that hold the word which all owners use."""
    return [
        row for found in source.matching_rows([["ladder"]], _scopes(source), view) for row in found
    ]


def _scopes(source: FactSource) -> Sequence[str]:
    return source.extent(MINE).scopes


QUESTIONS: Mapping[str, Callable[[FactSource, Sequence[Fact]], list[str]]] = {
    "matching_rows": lambda s, every: among(matching(s, VIEW), every),
    "matching_rows, narrowed": lambda s, every: among(matching(s, View(MINE, known_by=AT)), every),
    "visible_rows": lambda s, every: among(s.visible_rows(rows(every), VIEW), every),
    "rows_said_within": lambda s, every: among(s.rows_said_within(EVER, 50, VIEW)[0], every),
    "facts_with_neighbours": lambda s, every: contents(
        s.facts_with_neighbours(rows(every), 2, VIEW)
    ),
    "facts_holding": lambda s, _: contents(s.facts_holding([["ladder"]], MINE)),
    "kept_facts": lambda s, _: contents(s.kept_facts("", MINE)),
    "facts_by_name": lambda s, every: contents(
        s.facts_by_name([fact.name for fact in every], MINE).values()
    ),
    "utterances_around": lambda s, every: [
        content for fact in every for content in contents(s.utterances_around(fact, 1, MINE))
    ],
    "essentials": lambda s, _: contents(s.essentials(VIEW)),
    "sources_of": lambda s, every: [
        event for events in s.sources_of(rows(every), MINE).values() for event in events
    ],
    "corrections": lambda s, _: [one.old for one in s.corrections(MINE)],
    "former_entries": lambda s, _: [one.fact.content for one in s.former_entries(MINE)],
}
"""Each question, asked for one scope; where it takes facts, it is given those of all scopes."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_from_its_scope_alone(provider, question):
    """G4: no answer holds a fact of another agent, person or workspace, and none is empty."""
    assert provider.facts is not None
    with provider.facts.reading(EVERYONE, 5.0) as search:
        source = search.source
        every = source.facts_holding([["ladder"]], EVERYONE)
        assert {fact.content[-1] for fact in every} == {"0", "1", "2", "3"}
        answer = QUESTIONS[question](source, every)
    assert answer
    assert [content for content in answer if OWN not in content] == []


def test_counts_and_names_are_of_the_scope_alone(provider):
    """G4: how much there is, and who spoke, is told of the asked scope alone."""
    assert provider.facts is not None
    with provider.facts.reading(EVERYONE, 5.0) as search:
        source = search.source
        mine, everyone = source.extent(MINE), source.extent(EVERYONE)
        assert (everyone.facts, len(everyone.scopes)) == (4 * mine.facts, 4 * len(mine.scopes))
        assert source.speakers(["maria", "nora0", "nora1"], MINE) == {"maria", "nora0"}


@pytest.mark.parametrize(("store", "shared", "foreign"), [("memory", 1, 2), ("user", 2, 1)])
def test_an_entry_is_taken_back_in_its_own_store_alone(provider, store, shared, foreign):
    """G4: `memory` is the agent's store and `user` the person's: no other one loses an entry."""
    for number in (shared, foreign):
        entry = add(f"A note of {number}", store)
        feed(provider, [entry], first=100 + number, scope=OWNERS[number], session="notes")
    taken_back = [remove(f"A note of {number}", store) for number in (shared, foreign)]
    feed(provider, taken_back, first=200, scope=ME, session="notes")
    assert provider.facts is not None
    with provider.facts.reading(EVERYONE, 5.0) as search:
        kept = contents(search.source.kept_facts("", EVERYONE))
    assert [content for content in kept if "A note of" in content] == [f"A note of {foreign}"]


def test_neighbours_are_not_looked_for_among_all_tenants(postgres_provider):
    """However many facts are asked for, Postgres reads their own sessions by the index."""
    rows = list(range(1, 12_000, 50))
    given = {"rows": rows, "reach": 2, "scopes": [1], "known_by": AT}
    with psycopg.connect(postgres_provider.config.options["url"]) as db:
        db.execute("set search_path to memorybus")
        db.execute(FILL_FACTS)
        db.execute("analyze facts")
        plan = db.execute(f"explain {statements._WITH_NEIGHBOURS}", given).fetchall()
    assert "Seq Scan on facts" not in str(plan)
