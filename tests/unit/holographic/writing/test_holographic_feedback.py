"""The digest sees whatever recalls and tools depend on, feedback included (G8)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.providers.digested import Told, apply_batch, digest_after, interleaved
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import (
    AnyEvent,
    ContextCompressing,
    Delegated,
    Event,
    MemoryWritten,
    Message,
    Scope,
    ToolCalled,
    TurnCompleted,
)
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.ranking.facts import mark_of_session, name_of_kept, name_of_said
from unit.holographic.holographic_feeding import AT, add, context, feed, opened, shown, texts, turn

TEXTS = ("tea", "tea and toast", "green tea", "no tea", "tea at noon")
WRITES = ("add", "add", "replace", "remove")
HAPPENS = ("turn", "note", "write", "compress", "judge", "judge", "judge")
steps = st.tuples(
    st.sampled_from(HAPPENS), st.sampled_from("abc"), st.integers(0, 4), st.integers(0, 99)
)


class Live:
    """A conversation with a live store: what its model judges, a search has shown it before."""

    def __init__(self, provider: HolographicProvider) -> None:
        self.provider = provider
        self.told: list[Told] = []

    def happens(self, what: str, session: str, text: int, choice: int) -> None:
        """Make an event of a step, and apply it; judging nothing is none."""
        words, more = TEXTS[text], {"content": TEXTS[text], "category": session}
        if what == "judge":
            self._judge(session, choice)
        elif what == "turn":
            self.tell(session, TurnCompleted(user=words, assistant=TEXTS[choice % 5]))
        elif what == "note":
            self.tell(session, called("memory_add", more))
        elif what == "compress":
            messages = ({"role": "user", "content": words}, {"role": "user", "content": "more tea"})
            self.tell(session, ContextCompressing(messages=messages))
        else:
            self.tell(session, written(WRITES[choice % 4], words, TEXTS[choice % 5]))

    def tell(self, session: str, event: AnyEvent) -> None:
        """Apply an event."""
        one = Told.of(session, event, len(self.told))
        apply_batch(self.provider, [one], len(self.told))
        self.told.append(one)

    def judge(self, session: str, fact: Any, *, helpful: bool) -> None:
        """Judge a fact."""
        self.tell(session, called("memory_feedback", {"fact_id": fact, "helpful": helpful}))

    def _judge(self, session: str, choice: int) -> None:
        found = sorted(shown(self.provider, "tea"), key=lambda fact: (fact["text"], fact["id"]))
        if found:
            self.judge(session, found[choice % len(found)]["id"], helpful=choice % 3 > 0)


def called(tool: str, arguments: Mapping[str, Any]) -> ToolCalled:
    """Return a call of one of the provider's tools."""
    return ToolCalled(provider="holographic", tool=tool, arguments=arguments)


def written(action: Any, text: str, old: str) -> MemoryWritten:
    """Return a memory write."""
    return MemoryWritten(
        action=action, store="memory", content=text, old_text="" if action == "add" else old
    )


@settings(max_examples=25)
@given(st.lists(steps, min_size=2, max_size=20), st.randoms(use_true_random=False))
@pytest.mark.slow(reason="generates histories for a real store")
def test_feedback_is_the_same_in_any_mix_of_keys(tmp_path_factory, history, rng):
    """G8: what the live store's model judged, a store that mixes the keys otherwise judges too."""
    with opened(tmp_path_factory.mktemp("live")) as provider:
        live = Live(provider)
        for step in history:
            live.happens(*step)
        expected = list(provider.digest())
    again = tmp_path_factory.mktemp("again")
    assert digest_after("holographic", again, interleaved(live.told, rng), rng) == expected


def rebuilt(home: Path, told: Sequence[Told]) -> dict[str, float]:
    """Apply events to a fresh store; return the trust in each text."""
    with opened(home) as provider:
        for done, one in enumerate(told):
            apply_batch(provider, [one], done)
        return {fact["text"]: fact["trust"] for fact in shown(provider, "tea")}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Return a live store in which three sessions have spoken of tea."""
    with opened(tmp_path / "live") as provider:
        live = Live(provider)
        live.tell("a", TurnCompleted(user="tea of a turn", assistant="more tea"))
        live.tell("b", called("memory_add", {"content": "tea of a note"}))
        live.tell("b", written("add", "tea of a store", ""))
        live.tell("b", Delegated(task="tea of a task", result="tea of a result"))
        yield live


def test_feedback_waits_for_its_fact(live, tmp_path):
    """G8: judgements that a rebuild hears before the facts count when these come."""
    for fact in shown(live.provider, "tea"):
        live.judge("c", fact["id"], helpful=fact["kind"] != "note")
    judged = {fact["text"]: fact["trust"] for fact in shown(live.provider, "tea")}
    assert judged == dict.fromkeys(judged, 0.55) | {"tea of a note": 0.4}
    assert len(judged) == 6

    assert rebuilt(tmp_path / "again", [*live.told[4:], *live.told[:4]]) == judged


def test_feedback_whose_fact_is_left_out_meets_no_other(live, tmp_path):
    """G8: without a session, what was judged in it leaves every other fact as it was."""
    for fact in shown(live.provider, "tea"):
        if fact["session"] == "a":
            live.judge("c", fact["id"], helpful=False)

    trust = rebuilt(tmp_path / "again", live.told[1:])
    assert trust == dict.fromkeys(trust, 0.5)
    assert len(trust) == 4


def test_the_order_of_judgements_does_not_matter(live, tmp_path):
    """G8: not at the bounds of trust either: of many judgements any order comes to the same."""
    (fact,) = (one for one in shown(live.provider, "tea") if one["kind"] == "note")
    for helpful in [True] * 12 + [False] * 3:
        live.judge("praise" if helpful else "blame", fact["id"], helpful=helpful)

    judged = shown(live.provider, "note")[0]["trust"]
    assert judged == 0.8
    again = rebuilt(tmp_path / "again", [*live.told[:4], *reversed(live.told[4:])])
    assert again["tea of a note"] == judged


def test_facts_of_an_event_have_names_of_their_own(live):
    """Passages of one long turn, alike or not, are told apart."""
    long = "tea. " * 600
    live.tell("a", TurnCompleted(user=long, assistant=long))

    found = live.provider.opened.db.execute("select name from facts").fetchall()
    assert len(set(found)) == len(found) > 10


def test_feedback_on_what_several_sessions_noted(live, tmp_path):
    """G8: a note has one name, whoever brings it first; other kinds of that text have others."""
    live.tell("c", called("memory_add", {"content": "tea of a note"}))
    live.tell("c", written("add", "tea of a note", ""))
    for fact in shown(live.provider, "note"):
        live.judge("c", fact["id"], helpful=fact["kind"] == "note")
    judged = {fact["kind"]: fact["trust"] for fact in shown(live.provider, "note")}
    assert judged == {"note": 0.55, "memory": 0.4}

    with opened(tmp_path / "again") as again:
        for done, one in enumerate([*live.told[4:], *live.told[:4]]):
            apply_batch(again, [one], done)
        assert list(again.digest()) == list(live.provider.digest())


OWNER = Scope(agent="coder", user="ann")
SAID: tuple[Message, ...] = ({"role": "user", "content": "tea"},)


class Fed(msgspec.Struct, frozen=True):
    """An event, and where it came from."""

    event: Event
    n: int = 1
    session: str = "s1"
    at: int = AT


def note(content: str = "tea", category: str = "", tags: tuple[str, ...] = ()) -> ToolCalled:
    """Return a call that keeps a note."""
    filed = {"content": content, "category": category, "tags": list(tags)}
    return ToolCalled(provider="holographic", tool="memory_add", arguments=filed)


def feedback_on(fact: str, *, helpful: bool, times: int = 1) -> list[Fed]:
    """Return feedback, so many times."""
    arguments = {"fact_id": fact, "helpful": helpful}
    event = ToolCalled(provider="holographic", tool="memory_feedback", arguments=arguments)
    return [Fed(event, 10 + n) for n in range(times)]


TEA_SAID = name_of_said(mark_of_session("s1"), bytes.fromhex(context(1).event_id), 0)
TEA_NOTED = name_of_kept(OWNER, "note", "tea")
DIFFERENT: dict[str, tuple[list[Fed], list[Fed], str]] = {
    "said: the text": ([Fed(turn("tea"))], [Fed(turn("milk"))], "said/s1"),
    "said: by whom": (
        [Fed(turn("tea", user_name="Ann Lee"))],
        [Fed(turn("tea", user_name="Lee Ann"))],
        "said/s1 speakers",
    ),
    "said: when": ([Fed(turn("tea"))], [Fed(turn("tea"), at=AT + 1)], "said/s1"),
    "said: in what": (
        [Fed(turn("", messages=SAID))],
        [Fed(ContextCompressing(messages=SAID))],
        "said/s1",
    ),
    "said: tags": (
        [Fed(Delegated(task="tea", result="", child_session="c1"))],
        [Fed(Delegated(task="tea", result="", child_session="c2"))],
        "said/s1",
    ),
    "said: the order": (
        [Fed(turn("tea"), 1), Fed(turn("milk"), 2)],
        [Fed(turn("milk"), 2), Fed(turn("tea"), 1)],
        "said/s1",
    ),
    "said: its name": ([Fed(turn("tea"), 1)], [Fed(turn("tea"), 2)], "said/s1"),
    "kept: an entry": ([Fed(add("tea"))], [Fed(add("milk"))], "memory"),
    "kept: a person's entry": ([Fed(add("tea", "user"))], [Fed(add("milk", "user"))], "user"),
    "kept: the text": ([Fed(note())], [Fed(note("milk"))], "note"),
    "kept: where": ([Fed(note())], [Fed(note(), session="s2")], "note"),
    "kept: when": ([Fed(note())], [Fed(note(), at=AT + 1)], "note"),
    "kept: category": ([Fed(note())], [Fed(note(category="rules"))], "note"),
    "kept: tags": ([Fed(note())], [Fed(note(tags=("rules",)))], "note"),
} | {
    f"{where}: {'' if helpful else 'un'}helpful": (
        [made, *feedback_on(fact, helpful=helpful)],
        [made, *feedback_on(fact, helpful=helpful, times=2)],
        key,
    )
    for where, made, fact, key in (
        ("said", Fed(turn("tea")), TEA_SAID, "said/s1"),
        ("kept", Fed(note()), TEA_NOTED, "note"),
    )
    for helpful in (True, False)
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_is_named(case, tmp_path):
    """G8: two states that differ in one thing differ in the digest of that key, and no other."""
    one, other, keys = DIFFERENT[case]
    first, second = digest(tmp_path / "one", one), digest(tmp_path / "other", other)

    differing = {key for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
    assert differing == {f"coder/ann//{key}" for key in keys.split()}


def test_owners_do_not_share_a_key(tmp_path):
    """G8: the same session, said by two people, is two keys; judging one leaves the other's."""
    with opened(tmp_path) as provider:
        feed(provider, [turn("tea")])
        provider.sync_turn(turn("tea"), context(1, Scope(agent="coder", user="bob")))
        before = dict(provider.digest())
        (feedback,) = feedback_on(TEA_SAID, helpful=True)
        feed(provider, [feedback.event], first=feedback.n)
        after = dict(provider.digest())

    assert {key for key, found in before.items() if after[key] != found} == {"coder/ann//said/s1"}
    assert len(after) == 2


def digest(home: Path, fed: list[Fed]) -> dict[str, str]:
    """Return the digest of a store that these events made."""
    with opened(home) as provider:
        for one in fed:
            feed(provider, [one.event], first=one.n, session=one.session, at=one.at)
        return dict(provider.digest())


def test_a_session_met_under_two_roots_is_one_in_any_order(tmp_path):
    """G3, G8: a host that forgot a lineage gives another root, hence another key: both are kept."""
    found = []
    for roots in (("a", "b"), ("b", "a")):
        with opened(tmp_path / roots[0]) as provider:
            for root in roots:
                feed(provider, [turn(f"tea of {root}")], first=ord(root), root=root)
            assert sorted(texts(provider, "tea")) == ["tea of a", "tea of b"]
            found.append(list(provider.digest()))
    assert found[0] == found[1]
    assert len({key for key, _ in found[0]}) == len(found[0])
