"""The digest sees whatever recalls and tools depend on: another state has another one (G8)."""

from pathlib import Path

import msgspec
import pytest
from memorybus.events import ContextCompressing, Delegated, Event, Message, Scope, ToolCalled
from memorybus_providers.ranking.facts import mark_of_session, name_of_kept, name_of_said
from unit.holographic.holographic_feeding import AT, add, context, feed, opened, texts, turn

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
