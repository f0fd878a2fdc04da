"""Nothing outside the asked scope is ever returned."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import Scope
from memorybus_providers.base import RecallScope
from unit.holographic.holographic_feeding import (
    EVERYONE,
    add,
    context,
    feed,
    opened,
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
