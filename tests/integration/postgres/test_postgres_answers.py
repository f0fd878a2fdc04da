"""One ranking, two stores: Postgres answers as SQLite does, fact for fact."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from memorybus.events import ContextCompressing, Delegated, Event, Scope, SessionSwitched
from memorybus_providers.base import RecallContext, RecallScope
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.postgres import PostgresProvider
from unit.holographic.finding.spoken_cases import SPOKEN
from unit.holographic.holographic_feeding import (
    AT,
    DAY,
    ME,
    MINE,
    add,
    context,
    feed,
    opened,
    remove,
    replace,
    turn,
)

TWIN = Scope(agent="coder", user="ann", workspace="boat")


class Both:
    """The two providers, to which the same events are applied."""

    def __init__(self, postgres: PostgresProvider, sqlite: HolographicProvider) -> None:
        self.postgres, self.sqlite = postgres, sqlite
        self.n = 0

    def take(self, *events: Event, **place: Any) -> None:
        """Apply events to both."""
        for provider in (self.postgres, self.sqlite):
            feed(provider, events, first=self.n + 1, **place)
        self.n += len(events)

    def call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """Call a tool of both; fail unless they return the same."""
        self.n += 1
        one, other = (
            provider.handle_tool_call(tool, arguments, context(self.n, at=AT + 9 * DAY))
            for provider in (self.postgres, self.sqlite)
        )
        assert one == other
        return one

    def agree(self, question: str, scope: RecallScope = MINE, **more: Any) -> int:
        """Fail unless both recall the same for a question; return how much."""
        asked = RecallContext(scope, budget=4_000, **more)
        one, other = (p.prefetch(question, asked) for p in (self.postgres, self.sqlite))
        assert [(f.text, f.session, f.at, f.speaker, f.event, f.until, f.before) for f in one] == [
            (f.text, f.session, f.at, f.speaker, f.event, f.until, f.before) for f in other
        ]
        assert [f.score for f in one] == pytest.approx([f.score for f in other])
        return len(one)


@pytest.fixture
def both(provider: PostgresProvider, tmp_path: Path) -> Iterator[Both]:
    """Return both, empty."""
    with opened(tmp_path) as sqlite:
        yield Both(provider, sqlite)


def tell_a_life(both: Both) -> None:
    """Apply some days of a life: turns, writes, corrections, what was taken back."""
    both.take(
        turn("I live in Berlin", "A fine city", user_name="Ann", assistant_name="Bob"),
        turn("My sister Ana works at the harbour office", "Noted"),
        turn("The meeting is on Friday. Is that right?", "Yes, at nine"),
    )
    both.take(add("Likes green tea"), add("Ann Keller, born in May", "user"), at=AT + DAY)
    both.take(
        turn("I moved to Paris", "Congratulations", user_name="Ann"),
        turn("Undo me, quokka", "Done"),
        session="s2",
        root="s2",
        at=AT + 2 * DAY,
    )
    undone = context(both.n).event_id
    rewind = SessionSwitched(new_id="s2", reason="rewind", rewound=True, retracted=(undone,))
    both.take(rewind, session="s2", root="s2", at=AT + 2 * DAY)
    both.take(replace("green tea", "Likes black coffee"), remove("no such"), at=AT + 3 * DAY)
    message = {"role": "user", "content": "The boat is called Petrel"}
    both.take(ContextCompressing(messages=(message,), compression_count=1), at=AT + 4 * DAY)
    both.take(Delegated(task="Find the Petrel", result="It is in Kiel", child_session="c"))
    both.take(turn("Paris is only a rumour here", "Yes"), scope=TWIN, session="w", root="w")


QUESTIONS = (
    "Where do I live?",
    "Where does my sister work?",
    "What does she drink?",
    "where is the Petrle",
    "the Petrel",
    "quokka",
    "What did Ann say?",
    "",
)


def test_both_stores_recall_the_same(both):
    """A life of every sort of event is recalled alike, also as of a time, and by an operator."""
    tell_a_life(both)

    found = [both.agree(question) for question in QUESTIONS]
    assert found[0]
    assert not found[5]
    for question in QUESTIONS:
        both.agree(question, RecallScope("coder", "ann", "boat"))
        both.agree(question, RecallScope(None, None, None))
        both.agree(question, as_of=AT + DAY)
    both.agree("Where do I live?", explain=True)
    block = both.postgres.system_prompt_block(MINE)
    assert block
    assert block == both.sqlite.system_prompt_block(MINE)


def test_both_stores_know_alike_what_was_said_last(both):
    """The newest days come first, in whatever order they came to the store."""
    for session, day in {"a": 3, "b": 9, "c": 1, "d": 7, "e": 0}.items():
        both.take(
            *(turn(f"{session}{n} sails", "Noted") for n in range(4)),
            session=session,
            root=session,
            at=AT + day * DAY,
        )
    both.take(turn("c again"), session="c", root="c", at=AT + 8 * DAY)
    both.take(turn("a twin's"), scope=TWIN, session="w", root="w", at=AT + 10 * DAY)

    assert both.agree("") == 12
    for scope in (RecallScope("coder", "ann", "boat"), RecallScope(None, None, None)):
        both.agree("", scope)
    both.agree("", as_of=AT + 7 * DAY)
    asked = RecallContext(MINE, budget=4_000)
    newest = [found.text[0] for found in both.postgres.prefetch("", asked)]
    assert "".join(newest[:6]) == "bcdace"


def test_both_stores_keep_the_same_instructions(both):
    """What a person tells the agent to keep to is kept, replaced and taken back alike."""
    both.take(
        turn("Please always answer in British English. What is the tide?", "High"),
        turn("Never push to main!", "Noted"),
        turn("Call me Robin", "Hello Robin"),
        at=AT + DAY,
    )
    both.take(turn("Always push to main", "As you like"), at=AT + 2 * DAY)
    taken_back = context(both.n).event_id

    block = both.postgres.system_prompt_block(MINE)
    assert block == both.sqlite.system_prompt_block(MINE)
    assert all(
        told in block for told in ("British English", "Always push to main", "Call me Robin")
    )
    assert "Never push" not in block
    assert both.call("memory_list", category="instruction")["results"]

    both.take(
        SessionSwitched(new_id="s1", reason="rewind", rewound=True, retracted=(taken_back,)),
        at=AT + 3 * DAY,
    )
    block = both.postgres.system_prompt_block(MINE)
    assert block == both.sqlite.system_prompt_block(MINE)
    assert "Never push to main!" in block
    assert both.agree("Do I push to main?")


def test_both_stores_leave_out_an_answered_question(both):
    """A bare question that a long answer follows is no memory in either store."""
    both.take(turn("How do I wax the skis?", "Take a hot iron and wax. " * 60))
    both.take(turn("My skis are red"), session="s2", root="s2")

    assert both.agree("What about my skis?")
    asked = RecallContext(MINE, budget=4_000)
    texts = {found.text for found in both.postgres.prefetch("What about my skis?", asked)}
    assert "My skis are red" in texts
    assert "How do I wax the skis?" not in texts


TIMES = (
    "What did I do in November 2023?",
    "14 November 2023",
    "Was war im November 2023?",
    "What did Ann say on 2023-11-14?",
    "Where did I live in 2023?",
)
"""Questions for when that life was told, in whatever year they are asked."""


def test_both_stores_find_the_same_by_time(both):
    """What was said at a time is recalled alike, also as of a time, and by an operator."""
    tell_a_life(both)

    for question in TIMES:
        assert both.agree(question)
        both.agree(question, RecallScope("coder", "ann", "boat"))
        both.agree(question, RecallScope(None, None, None))
    assert both.agree("yesterday", as_of=AT + 2 * DAY)
    assert both.agree("letzte Woche", as_of=AT + 8 * DAY)
    assert not both.agree("yesterday", as_of=AT + 30 * DAY)


def test_both_stores_have_the_same_digest(both):
    """The same events give the same digest, so that one store can be verified by the other."""
    tell_a_life(both)
    both.call("memory_add", content="The harbour opens at six", tags=["harbour"])

    digest = list(both.postgres.digest())
    assert digest == list(both.sqlite.digest())
    assert len(digest) > 5
    assert list(both.postgres.digest(digest[2][0])) == digest[3:]


def test_both_stores_answer_every_question_of_the_table(both):
    """Questions of all languages of the table are answered alike."""
    for language, cases in SPOKEN.items():
        told = [turn(text) for case in cases for text in (case.right, case.other)]
        both.take(*told, session=language, root=language)

    for cases in SPOKEN.values():
        for case in cases:
            both.agree(case.asked)


def test_both_stores_run_tools_alike(both):
    """Every tool returns the same, what it writes included."""
    tell_a_life(both)

    added = both.call("memory_add", content="Ana plays the cello", category="family", tags=["ana"])
    both.call("memory_add", content="Ana plays the cello", category="music")
    assert both.call("memory_search", query="Who plays the cello?")["results"]
    both.call("memory_search", query="cello", about="Ann", min_trust=0.1)
    both.call("memory_search", query="Where do I live?", as_of="2023-11-15")
    both.call("memory_feedback", fact_id=added["id"], helpful=True)
    both.call("memory_feedback", fact_id="00c0ffee00c0de", helpful=True)
    both.call("memory_correct", fact_id=added["id"], content="Ana plays the viola")
    both.call("memory_correct", old_text="harbour office", content="Ana works at the museum")
    for entity in ("Ana", "my sister", "Ann", "Petrel", "Bob"):
        both.call("memory_probe", entity=entity)
        both.call("memory_related", entity=entity)
    both.call("memory_reason", entities=["Ana", "Petrel"])
    assert both.call("memory_contradict", statement="Ana works at the harbour office")["results"]
    both.call("memory_list")
    both.call("memory_list", category="family")
    assert both.call("session_search", query="the meeting on Friday", around=3)["sessions"]
    again = both.call("memory_search", query="Who plays the cello?")
    assert again["results"][0]["text"] == "Ana plays the viola"


def test_a_call_that_comes_again_changes_nothing(provider):
    """A writing tool answers a repetition with its first result (G4)."""
    arguments = {"content": "Tea at \0 four"}

    first = provider.handle_tool_call("memory_add", arguments, context(7))
    assert provider.handle_tool_call("memory_add", arguments, context(7)) == first
    (found,) = provider.handle_tool_call("memory_list", {}, context(8, ME))["results"]
    assert found["text"] == "Tea at \0 four"
