"""An answer is of the asker's own scope and depends on it alone, whoever else is in the store."""

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import Derived, Event, Scope
from memorybus_providers.base import RecallContext, RecallScope, Recollection
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import (
    AT,
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
    shown,
    texts,
    turn,
)

names = st.sampled_from(["ann", "bob", "", "ann' or 1=1 --", "Ann", "ann\0"])
scopes = st.builds(Scope, agent=names, user=names, workspace=names)
asked = st.builds(
    RecallScope, st.none() | names, st.none() | names, st.none() | names
)  # fmt: skip


def covers(wanted: RecallScope, scope: Scope) -> bool:
    """Say whether a scope lies within what is asked for."""
    pairs = [
        (wanted.agent, scope.agent),
        (wanted.user, scope.user),
        (wanted.workspace, scope.workspace),
    ]
    return all(want is None or want == have for want, have in pairs)


def names_of(scope: Scope) -> tuple[str, str, str]:
    """Return what parts memories."""
    return scope.agent, scope.user, scope.workspace


@settings(max_examples=60)
@given(st.lists(scopes, min_size=1, max_size=6, unique=True), st.lists(asked, max_size=6))
@pytest.mark.slow(reason="generates histories for a real store")
def test_recall_returns_the_scope_and_nothing_else(owners, questions):
    """Turns, their neighbours and kept facts are recalled within their scope alone."""
    with TemporaryDirectory() as home, opened(Path(home)) as provider:
        for n, owner in enumerate(owners):
            events = [turn(f"secret {n}", f"answer {n}"), add(f"secret note {n}")]
            feed(provider, events, first=1 + 2 * n, scope=owner, session="shared")

        for wanted in [*questions, EVERYONE]:
            expected = {
                f"{what} {n}"
                for n, owner in enumerate(owners)
                if covers(wanted, owner)
                for what in ("secret", "answer", "secret note")
            }
            assert set(texts(provider, "secret", wanted, budget=10_000)) == expected


@settings(max_examples=30)
@given(scopes, scopes)
@pytest.mark.slow(reason="generates histories for a real store")
def test_tools_see_and_judge_only_their_scope(owner, caller):
    """The model finds and judges facts of its own agent, user and workspace alone."""
    with TemporaryDirectory() as home, opened(Path(home)) as provider:
        feed(provider, [add("secret note"), turn("secret word")], scope=owner)
        ids = [fact["id"] for fact in shown(provider, "secret", owner)]
        same = names_of(owner) == names_of(caller)
        assert bool(shown(provider, "secret", caller)) == same

        feed(provider, [add("secret note"), turn("secret word")], first=3, scope=caller)
        for n, fact in enumerate(ids):
            judgement = {"fact_id": fact, "helpful": True}
            answer = provider.handle_tool_call(
                "memory_feedback", judgement, context(10 + n, caller)
            )
            assert answer["ok"] == same

        trust = {fact["id"]: fact["trust"] for fact in shown(provider, "secret", owner)}
        assert [trust[fact] for fact in ids] == [0.55 if same else 0.5] * 2
        if not same:
            assert {fact["trust"] for fact in shown(provider, "secret", caller)} == {0.5}


def test_the_platform_parts_nothing(tmp_path):
    """A person is the same on every platform."""
    with opened(tmp_path) as provider:
        feed(provider, [turn("said on one")], scope=Scope("coder", "ann", platform="cli"))
        feed(provider, [turn("said on two")], first=2, scope=Scope("coder", "ann", platform="irc"))

        recalled = texts(provider, "said", RecallScope("coder", "ann"))
        assert set(recalled) == {"said on one", "said on two"}


SAID: list[Event] = [
    turn("I bought a red canoe for the lake", "A canoe! Which lake?"),
    turn("The lake behind the mill", "Then mind the weir, the canoe is light"),
    turn("My sister paints the mill", "Does she paint the lake too?"),
    add("The canoe is kept at the mill"),
    turn("We paddled the red canoe around the lake", "And the weir?"),
]
QUESTIONS = [
    "Where is the canoe?",
    "Which lake?",
    "What does my sister paint?",
    "mill lake canoe weir red",
    "What colour is the paddle?",
]
TENANTS = 50
_SCAN = re.compile(
    r"SCAN (?!asked|named|recent|last_session|\(|CONSTANT|\w+ VIRTUAL TABLE INDEX (?!0:$))"
)
"""A step of a plan that reads a whole table or index; lists of the question are excepted."""


def use_all(provider: HolographicProvider) -> None:
    """Write and read in every way in which a session does."""
    feed(provider, SAID)
    feed(
        provider,
        [add("The mill is old", "user"), replace("old", "The mill is new", "user")],
        first=10,
    )
    feed(provider, [remove("kept at the mill"), remove("mine", "user")], first=20)
    conclusion = Derived(kind="fact", text="Ann has a boat.", sources=(context(1).event_id,))
    feed(provider, [conclusion], first=25)
    assert provider.opened.source.conclusions("s1", MINE)
    corrected = {"old_text": "red canoe", "content": "The canoe is green"}
    provider.handle_tool_call("memory_correct", corrected, context(30))
    (first, *_) = shown(provider, "canoe lake")
    judged = {"fact_id": first["id"], "helpful": True}
    assert provider.handle_tool_call("memory_feedback", judged, context(31))["ok"]
    for tool, arguments in (
        ("memory_list", {}),
        ("memory_probe", {"entity": "mill"}),
        ("memory_related", {"entity": "mill"}),
        ("memory_reason", {"entities": ["mill", "lake"]}),
        ("memory_contradict", {"statement": "The canoe is red"}),
        ("memory_search", {"query": "canoe", "about": "ann", "as_of": "2026-01-01"}),
        ("session_search", {"query": "canoe"}),
    ):
        assert provider.handle_tool_call(tool, arguments, context(32))["ok"], tool
    for question in (*QUESTIONS, "What did I say in November 2023?", "", "Who am I?"):
        ask(provider, question)
        provider.prefetch(question, RecallContext(MINE, as_of=AT))
    provider.system_prompt_block(MINE)
    provider.retract([context(1).event_id], context(40))


def answers(provider: HolographicProvider) -> list[Sequence[Recollection]]:
    """Return what each question is answered, scores included."""
    return [ask(provider, question) for question in QUESTIONS]


def test_others_change_no_answer_no_score_and_no_order(tmp_path):
    """With 50 others who use the same words, before, between and after, all stays the same."""
    with opened(tmp_path / "alone") as provider:
        for n, event in enumerate(SAID):
            feed(provider, [event], first=1 + n)
        alone = answers(provider)
        seen = [fact["text"] for fact in shown(provider, "red canoe lake")]

    with opened(tmp_path / "among") as provider:
        for n, event in enumerate(SAID):
            for other in range(TENANTS):
                scope = Scope(agent="coder", user=f"user {other}")
                feed(provider, [event], first=1_000 * n + other, scope=scope)
            feed(provider, [event], first=100_000 + n)
        among = answers(provider)
        assert [fact["text"] for fact in shown(provider, "red canoe lake")] == seen

    assert [[(one.text, one.score) for one in found] for found in among] == [
        [(one.text, one.score) for one in found] for found in alone
    ]


def test_no_statement_of_a_session_reads_the_rows_of_all_tenants(provider):
    """What is read and written for one person is looked up by an index, however many there are."""
    statements: list[str] = []
    db = provider.opened.db
    db.set_trace_callback(statements.append)
    use_all(provider)
    db.set_trace_callback(None)

    plans = {
        statement: [step for *_, step in db.execute(f"explain query plan {statement}")]
        for statement in set(statements)
        if re.match(r"\s*(select|with|insert|update|delete)\b", statement)
    }
    assert len(plans) > 100
    assert {
        statement: scans
        for statement, plan in plans.items()
        if (scans := [step for step in plan if _SCAN.match(step)])
    } == {}


def test_a_word_that_only_others_use_is_unknown(provider):
    """No word of another scope is found, completed or counted."""
    feed(provider, [turn("A heron by the pond")])
    feed(provider, [turn("A zeppelin over the pond")], first=2, scope=Scope("coder", "bob"))

    assert texts(provider, "zeppelin") == []
    assert texts(provider, "zeppelins pond") == ["A heron by the pond"]


def test_a_person_is_forgotten_by_one_deletion(provider):
    """With the facts of a scope all that the index held of it goes, and nothing else."""
    feed(provider, SAID)
    feed(provider, SAID, first=100, scope=Scope("coder", "bob"))
    db = provider.opened.db
    (mine,) = db.execute("select id from scopes where user = ?", (ME.user,)).fetchone()

    db.execute("delete from facts where scope = ?", (mine,))

    left = [term for (term,) in db.execute("select term from vocabulary")]
    assert left
    assert not [term for term in left if term.startswith(f"{mine:x}_")]
    assert db.execute("select facts from scopes order by id").fetchall() == [(0,), (9,)]
    db.execute("insert into facts_fts(facts_fts, rank) values ('integrity-check', 1)")
