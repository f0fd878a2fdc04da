"""Truth over time: what holds comes first, what it took the place of is dated and not hidden."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from memorybus.events import Event, Scope, ToolCalled
from memorybus_providers.base import RecallContext, Recollection
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.ranking.facts import mark_of_session, name_of_said
from unit.holographic.holographic_feeding import (
    AT,
    DAY,
    EVERYONE,
    ME,
    MINE,
    add,
    ask,
    context,
    feed,
    opened,
    remove,
    replace,
)
from unit.holographic.holographic_feeding import turn as turn_of


class Days:
    """Feeds one event a day."""

    def __init__(self, provider: HolographicProvider) -> None:
        self.provider = provider
        self.day = 0

    def pass_with(self, *events: Event, session: str = "s1", scope: Scope = ME) -> None:
        """Apply each event on a day of its own."""
        for event in events:
            self.day += 1
            at = AT + self.day * DAY
            feed(self.provider, [event], first=self.day, at=at, session=session, scope=scope)

    def say(self, *texts: str) -> None:
        """Let the user say each text on a day of its own."""
        self.pass_with(*(turn_of(text) for text in texts))


@pytest.fixture(name="days")
def _days(provider: HolographicProvider) -> Days:
    return Days(provider)


def told(found: Sequence[Recollection]) -> list[tuple[str, int, str]]:
    """Return text, day of its end and what was so before."""
    return [(one.text, (one.until - AT) // DAY if one.until else 0, one.before) for one in found]


_NORA = (
    "allergic to penicillin", "a teacher at the Liceo", "from Genoa", "my sister", "left-handed",
    "vegetarian", "the mother of two boys", "a member of the choir", "afraid of heights",
    "forty-one",
)  # fmt: skip
_PAIRS = [pair for pair in combinations(_NORA, 2) if "forty-one" not in pair]
_VALUES = [
    ("I live in Lisbon", "I live near the harbour"),
    ("My favourite dish is ramen", "My favourite dish is gumbo"),
    ("I'm single", "I'm a nurse"),
    ("Releases happen on Fridays", "Releases happen on Tuesdays"),
]


@pytest.mark.parametrize(
    ("older", "newer"),
    [(f"Nora is {one}.", f"Nora is {other}.") for one, other in _PAIRS] + _VALUES,
)
@pytest.mark.parametrize("kept", [False, True])
def test_no_statement_ends_another_by_its_grammar(older, newer, kept, days):
    """Only a replacement or a correction ends a fact: "is a teacher" leaves "is allergic" true."""
    days.pass_with(*(add(text) if kept else turn_of(text) for text in (older, newer)))

    found = told(ask(days.provider, f"{older} {newer}"))

    assert set(found) == {(older, 0, ""), (newer, 0, "")}


def test_of_two_nearly_equal_statements_the_newer_comes_first(days):
    """Neither is marked: both may hold."""
    days.say("My favourite dish is ramen", "It is raining", "My favourite dish is gumbo")

    found = told(ask(days.provider, "favourite dish"))

    assert found[:2] == [
        ("My favourite dish is gumbo", 0, ""),
        ("My favourite dish is ramen", 0, ""),
    ]


def test_others_lives_are_others(days):
    """A statement about somebody else, or by an agent, takes no place of the person's."""
    days.say("I live in Lisbon")
    days.pass_with(turn_of("Ana moved to Oslo", "You live in Rome, and I live in Bonn"))

    assert {until for _, until, _ in told(ask(days.provider, "Who lives where? moved"))} == {0}


def test_no_scope_ends_what_another_says(days):
    """Another person's newer statement changes nothing of one's own."""
    days.say("I live in Lisbon")
    days.pass_with(turn_of("I live in Oslo"), scope=Scope(agent="coder", user="zoe"))

    assert told(ask(days.provider, "Where do I live?")) == [("I live in Lisbon", 0, "")]


def test_a_replaced_entry_is_known_as_what_was_before(days):
    """The former text stands beside the new one; a removed one is not recalled."""
    days.pass_with(add("Parks in row 7"), add("Hates rain"), replace("row 7", "Parks in row 9"))
    days.pass_with(remove("Hates rain"))

    assert told(ask(days.provider, "Parks in which row?")) == [
        ("Parks in row 9", 0, "Parks in row 7")
    ]
    assert ask(days.provider, "Who hates rain?") == []


def test_a_former_entry_of_another_scope_is_not_shown(days):
    """An agent's entry may be replaced in a talk with somebody else: neither sees the other's."""
    zoe = Scope(agent="coder", user="zoe")
    days.pass_with(add("Parks in row 7"))
    days.pass_with(replace("row 7", "Parks in row 9"), scope=zoe)

    assert [one.before for one in ask(days.provider, "Parks in which row?", EVERYONE)] in (
        [""], ["Parks in row 7"],
    )  # fmt: skip
    assert ask(days.provider, "Parks in which row?", MINE) == []


class TestCorrections:
    """``memory_correct``."""

    def correct(self, days: Days, session: str = "s1", **arguments: Any) -> None:
        """Call the tool on a day of its own."""
        called = ToolCalled(provider="holographic", tool="memory_correct", arguments=arguments)
        days.pass_with(called, session=session)

    def searched(self, days: Days, query: str) -> list[dict[str, Any]]:
        """Return what ``memory_search`` shows."""
        call = {"query": query}
        result = days.provider.handle_tool_call("memory_search", call, context(999))
        return list(result["results"])

    def test_by_id(self, days):
        """The note comes first wherever the fact would; the fact is marked."""
        days.say("The ferry leaves at nine from the north pier")
        (old,) = self.searched(days, "When does the ferry leave?")
        self.correct(days, fact_id=old["id"], content="Departure is at ten")

        new, old = self.searched(days, "When does the ferry leave?")
        assert (new["text"], new["before"]) == (
            "Departure is at ten",
            "The ferry leaves at nine from the north pier",
        )
        assert old["until"] == "2023-11-16T22:13:20+00:00"

    def test_by_text(self, days):
        """All facts that held the text until then are put right, none that comes later."""
        days.say("The ferry leaves at nine", "Yes, the ferry leaves at nine, I think")
        self.correct(days, old_text="ferry leaves at nine", content="The ferry leaves at ten")
        days.say("They said the ferry leaves at nine again")

        found = told(ask(days.provider, "When does the ferry leave?"))
        assert {text: until for text, until, _ in found} == {
            "The ferry leaves at ten": 0,
            "The ferry leaves at nine": 3,
            "Yes, the ferry leaves at nine, I think": 3,
            "They said the ferry leaves at nine again": 0,
        }

    def test_it_answers_what_it_replaces(self, provider):
        """The model is told which facts it put right, and what is wrong with a call."""
        feed(provider, [turn_of("The ferry leaves at nine")])

        def call(n: int, **arguments: Any) -> Any:
            return provider.handle_tool_call("memory_correct", arguments, context(n))

        assert "old_text" in call(50, content="It leaves at ten")["error"]
        assert "not both" in call(51, content="x", old_text="nine", fact_id="0" * 14)["error"]
        done = call(52, content="It leaves at ten", old_text="leaves at nine")
        assert [one["text"] for one in done["replaces"]] == ["The ferry leaves at nine"]

    @pytest.mark.parametrize("by", ["id", "text"])
    def test_it_stays_filed_as_it_was(self, provider, by):
        """A correction keeps category and tags, unless it gives others."""

        def call(n: int, tool: str, **arguments: Any) -> Any:
            return provider.handle_tool_call(tool, arguments, context(n))

        filed = {"category": "rules", "tags": ["release", "week"]}
        made = call(50, "memory_add", content="Deploy on Fridays", **filed)
        named = {"fact_id": made["id"]} if by == "id" else {"old_text": "on Fridays"}
        call(51, "memory_correct", content="Deploy on Mondays", **named)
        call(52, "memory_correct", content="Deploy daily", old_text="on Mondays", category="habits")
        found = call(53, "memory_search", query="Deploy")["results"]
        assert {one["text"]: (one["category"], one["tags"]) for one in found} == {
            "Deploy on Fridays": ("rules", ["release", "week"]),
            "Deploy on Mondays": ("rules", ["release", "week"]),
            "Deploy daily": ("habits", ["release", "week"]),
        }

    def test_one_that_is_taken_back_counts_no_more(self, days):
        """Undoing the turn of a correction leaves the fact as it was."""
        days.say("The ferry leaves at nine")
        self.correct(days, old_text="leaves at nine", content="It leaves at ten")
        days.provider.retract([context(2).event_id], context(3))

        assert told(ask(days.provider, "When does the ferry leave?")) == [
            ("The ferry leaves at nine", 0, "")
        ]

    def test_a_correction_may_be_put_right(self, days):
        """The newest correction is first; a note said again holds again."""
        days.pass_with(add("The code is heron"))
        self.correct(days, old_text="code is heron", content="The code is stork")
        self.correct(days, old_text="code is stork", content="The code is crane")

        found = told(ask(days.provider, "What is the code?"))
        assert found[0][0] == "The code is crane"
        assert {text: until > 0 for text, until, _ in found} == {
            "The code is crane": False,
            "The code is stork": True,
            "The code is heron": True,
        }


@pytest.mark.parametrize("fact_first", [True, False])
def test_a_correction_may_be_applied_before_its_fact(fact_first, provider, tmp_path):
    """G8: the two are events of two keys; recall and digest are the same in either order."""
    told_at, corrected_at = AT, AT + DAY
    name = name_of_said(mark_of_session("a"), bytes.fromhex(context(1).event_id), 0)
    arguments = {"fact_id": name, "content": "It leaves at ten"}
    correct = ToolCalled(provider="holographic", tool="memory_correct", arguments=arguments)

    def fact(into: HolographicProvider) -> None:
        said = [turn_of("The ferry leaves at nine")]
        feed(into, said, first=1, session="a", at=told_at, root="a")

    def correction(into: HolographicProvider) -> None:
        feed(into, [correct], first=2, session="b", at=corrected_at, root="b")

    with opened(tmp_path / "other") as other:
        for step in (fact, correction):
            step(other)
        for step in (fact, correction) if fact_first else (correction, fact):
            step(provider)
        assert list(provider.digest()) == list(other.digest())
    found = told(ask(provider, "When does the ferry leave?"))
    assert found == [
        ("It leaves at ten", 0, "The ferry leaves at nine"),
        ("The ferry leaves at nine", 1, ""),
    ]


def test_contradict_finds_what_was_put_right(days):
    """What a statement speaks of and was replaced comes with what holds, and nothing else."""
    days.say("I live in Lisbon", "I moved to Oslo", "The kettle is broken")
    days.pass_with(add("Parks in row 7"), replace("row 7", "Parks in row 9"))
    TestCorrections().correct(days, old_text="live in Lisbon", content="I live in Oslo")

    def shown(statement: str) -> list[tuple[str, str]]:
        asked = {"statement": statement}
        found = days.provider.handle_tool_call("memory_contradict", asked, context(999))
        return [(one["text"], one.get("before", "")) for one in found["results"]]

    assert shown("The user lives in Lisbon") == [
        ("I live in Oslo", "I live in Lisbon"),
        ("I live in Lisbon", ""),
    ]
    assert shown("The user parks in row 7") == [("Parks in row 9", "Parks in row 7")]
    assert shown("The kettle is fine") == []


class TestAsOf:
    """What was known at a time."""

    def then(self, days: Days, question: str, day: int) -> list[tuple[str, int, str]]:
        """Return what is recalled as of the end of a day."""
        ctx = RecallContext(MINE, as_of=AT + day * DAY)
        return told(days.provider.prefetch(question, ctx))

    def test_what_was_said_later_does_not_count(self, days):
        """Neither what was said later is recalled, nor does it end what held."""
        days.say("I live in Lisbon", "It is raining", "I moved to Oslo")

        assert self.then(days, "Where do I live?", 0) == []
        assert self.then(days, "Where do I live?", 2)[0] == ("I live in Lisbon", 0, "")
        assert ("I moved to Oslo", 0, "") in self.then(days, "Where do I live?", 3)

    def test_what_mattered_then(self, days):
        """A blank question gets what mattered most until then."""
        days.pass_with(add("Parks in row 7"), add("Hates rain"))

        assert self.then(days, "", 1) == [("Parks in row 7", 0, "")]

    def test_entries_as_they_were(self, days):
        """A replaced and a removed entry are recalled as of a time at which they stood."""
        days.pass_with(add("Parks in row 7"), replace("row 7", "Parks in row 9"), remove("row 9"))

        assert self.then(days, "Parks in which row?", 1) == [("Parks in row 7", 0, "")]
        assert self.then(days, "Parks in which row?", 2) == [
            ("Parks in row 9", 0, "Parks in row 7")
        ]
        assert self.then(days, "Parks in which row?", 3) == []

    def test_a_later_correction_does_not_count(self, days):
        """A fact that was put right later stands as it did."""
        days.say("The ferry leaves at nine")
        TestCorrections().correct(days, old_text="leaves at nine", content="It leaves at ten")

        assert self.then(days, "When does the ferry leave?", 1) == [
            ("The ferry leaves at nine", 0, "")
        ]

    def test_the_tool_takes_a_date(self, days):
        """``memory_search`` answers as of a date, and says what is wrong with another text."""
        days.say("I live in Lisbon", "I moved to Oslo")

        def searched(as_of: str) -> Any:
            call = {"query": "Where do I live?", "as_of": as_of}
            return days.provider.handle_tool_call("memory_search", call, context(99))

        assert [one["text"] for one in searched("2023-11-16")["results"]] == ["I live in Lisbon"]
        assert len(searched("")["results"]) == 2
        assert "2026-03-01" in searched("last week")["error"]
