"""What is kept follows the agent's two stores, and what was taken back goes."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Event,
    MemoryWritten,
    Scope,
    SessionSwitched,
    ToolCalled,
)
from memorybus_providers.base import RecallScope
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import (
    AT,
    ME,
    add,
    check_index,
    context,
    feed,
    opened,
    remove,
    replace,
    shown,
    stored,
    texts,
    turn,
)


def contents(provider: HolographicProvider) -> list[str]:
    """Return the text of all facts."""
    return [row[0] for row in stored(provider)]


WRITES: dict[str, tuple[list[MemoryWritten], list[str]]] = {
    "an add": ([add("tea")], ["tea"]),
    "the same add again": ([add("tea"), add("tea")], ["tea"]),
    "a blank add": ([add(" \n"), add("")], []),
    "the two stores are apart": ([add("tea"), add("tea", "user")], ["tea", "tea"]),
    "replace by substring": ([add("likes tea"), replace("tea", "likes milk")], ["likes milk"]),
    "replace what is not there": ([replace("tea", "likes milk")], ["likes milk"]),
    "replace without an old text": ([add("tea"), replace("", "milk")], ["tea", "milk"]),
    "replace by nothing": ([add("tea"), replace("tea", " ")], ["tea"]),
    "replace by what is there": ([add("tea"), add("milk"), replace("tea", "milk")], ["milk"]),
    "replace by itself": ([add("tea"), replace("te", "tea")], ["tea"]),
    "remove by substring": ([add("likes tea"), add("milk"), remove("tea")], ["milk"]),
    "remove what is not there": ([add("tea"), remove("milk")], ["tea"]),
    "remove without a text": ([add("tea"), remove("")], ["tea"]),
    "remove from the other store": ([add("tea"), remove("tea", "user")], ["tea"]),
    "an equal text before a longer one": ([add("tea cup"), add("tea"), remove("tea")], ["tea cup"]),
    "several that contain it": ([add("tea a"), add("tea b"), remove("tea")], ["tea a", "tea b"]),
    "wildcards are text": ([add("tea"), remove("%"), remove("t_a"), remove("*")], ["tea"]),
    "NUL is text": ([add("a\0tea"), add("b\0milk"), remove("\0tea")], ["b\0milk"]),
}


@pytest.mark.parametrize("case", WRITES)
def test_writes_end_in_the_stores_state(case, provider):
    """Each write does what the agent's own store did, and never touches what it may not mean."""
    writes, expected = WRITES[case]

    feed(provider, writes)

    assert contents(provider) == expected
    check_index(provider)


def test_what_an_entry_said_before_is_exported_as_former(provider):
    """Whoever is shown what is kept knows which entries hold no more."""
    feed(provider, [add("likes tea"), replace("tea", "likes milk")])

    kept = {one.text: one.former for one in provider.export(RecallScope.own(ME))}

    assert kept == {"likes tea": True, "likes milk": False}


def test_a_write_never_touches_what_was_said(provider):
    """Removing an entry leaves the conversation in which the same words were said."""
    feed(provider, [turn("I like tea"), add("I like tea"), remove("tea")])

    assert [row[:2] for row in stored(provider)] == [("I like tea", "user")]


def test_what_is_removed_is_not_recalled(provider):
    """The index forgets with the facts."""
    feed(provider, [add("The code is heron"), replace("heron", "The code is stork"), add("x")])
    assert texts(provider, "heron") == []
    assert texts(provider, "stork code") == ["The code is stork"]

    feed(provider, [remove("stork")], first=10)
    assert texts(provider, "stork code") == []


@pytest.mark.parametrize(
    ("store", "other", "left"),
    [
        ("user", Scope(agent="writer", user="ann"), 0),
        ("user", Scope(agent="coder", user="bob"), 1),
        ("memory", Scope(agent="coder", user="bob"), 0),
        ("memory", Scope(agent="writer", user="ann"), 1),
    ],
)
def test_a_store_belongs_to_the_agent_or_the_person(store, other, left, provider):
    """A removal reaches the person's entries under any agent, the agent's with any person."""
    feed(provider, [add("likes tea", store)], scope=ME)

    feed(provider, [remove("tea", store)], first=2, scope=other)

    assert len(stored(provider)) == left


def test_the_own_scope_comes_first(provider):
    """Where two scopes hold the text, a removal takes the fact of its own."""
    other = Scope(agent="coder", user="bob")
    feed(provider, [add("likes tea")], scope=ME, at=1)
    feed(provider, [add("likes tea")], first=2, scope=other, at=2)

    feed(provider, [remove("tea")], first=3, scope=other)

    assert [row[3] for row in stored(provider)] == [1]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "replace", "remove"]), st.text("ab", max_size=3)),
        max_size=12,
    )
)
@pytest.mark.slow(reason="generates histories for a real store")
def test_a_store_never_holds_a_text_twice(writes):
    """Whatever is written, entries stay distinct and none is blank, and the index agrees."""

    events = [
        MemoryWritten(action=action, content=text + "a", old_text=text) for action, text in writes
    ]
    with TemporaryDirectory() as home, opened(Path(home)) as provider:
        if events:
            feed(provider, events)

        kept = contents(provider)
        assert len(kept) == len(set(kept))
        assert all(kept)
        check_index(provider)


PIN = "my bank PIN is 4711"
QUESTION = "what is the bank PIN?"


def undo(*numbers: int) -> SessionSwitched:
    """Return a rewind that takes back the events of these numbers."""
    ids = tuple(context(n).event_id for n in numbers)
    return SessionSwitched(new_id="s1", reason="rewind", rewound=True, retracted=ids)


def note(text: str, **more: Any) -> ToolCalled:
    """Return the call that keeps a note."""
    return ToolCalled(
        provider="holographic", tool="memory_add", arguments={"content": text, **more}
    )


def test_an_undone_turn_is_gone_from_recall_tools_and_index(provider):
    """G8: what an undone turn said is recalled by nobody, shown by no tool, and in no index."""
    feed(provider, [turn("I like tea", "Good."), turn(PIN, "Noted: 4711.")])
    assert PIN in texts(provider, QUESTION)
    feed(provider, [undo(2)], first=3)
    assert contents(provider) == ["I like tea", "Good."]
    assert texts(provider, QUESTION) == []
    assert shown(provider, "4711") == []
    check_index(provider)


def test_what_happened_in_an_undone_turn_goes_with_it(provider):
    """A delegation and a note of the turn go, if the rewind names them."""
    delegated = Delegated(task="look up the PIN", result="4711", child_session="c")
    feed(provider, [delegated, note("the PIN is 4711"), turn(PIN, "ok"), undo(1, 2, 3)])
    assert contents(provider) == []
    check_index(provider)


def test_a_compression_within_an_undone_turn_goes_with_it(provider):
    """What a compression in its middle has kept of a turn is forgotten with the turn."""
    messages = ({"role": "user", "content": "I like tea"}, {"role": "user", "content": PIN})
    feed(provider, [ContextCompressing(messages=messages), turn(PIN, "ok"), undo(2)])
    assert contents(provider) == ["I like tea"]
    feed(provider, [ContextCompressing(messages=messages)], first=9)
    assert contents(provider) == ["I like tea", PIN], "it is said again: that is another event"


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([turn(PIN, "ok"), undo(1), turn(PIN, "ok")], [PIN, "ok"]),
        ([add("tea"), undo(1)], ["tea"]),
    ],
    ids=["the same words said again", "an entry of a store"],
)
def test_an_undo_takes_back_no_other_event(events, left, provider):
    """What is said again is another event; a memory write's order key is another."""
    feed(provider, events)
    assert contents(provider) == left


ORDERS: dict[str, Sequence[tuple[int, Event, str]]] = {
    "the undone one first": [
        (1, note("tea", category="one"), "a"),
        (2, undo(1), "a"),
        (3, note("tea", category="two", tags=["x"]), "b"),
    ],
    "the other one first": [
        (3, note("tea", category="two", tags=["x"]), "b"),
        (1, note("tea", category="one"), "a"),
        (2, undo(1), "a"),
    ],
    "the other one in between": [
        (1, note("tea", category="one"), "a"),
        (3, note("tea", category="two", tags=["x"]), "b"),
        (2, undo(1), "a"),
    ],
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_note_that_another_event_says_stays(order, tmp_path):
    """G8: a note stays as the event has it that is left, in whatever order the keys came."""
    digests = []
    alone = [one for one in ORDERS[order] if one[0] == 3]
    for name, events in (("given", ORDERS[order]), ("alone", alone)):
        with opened(tmp_path / name) as provider:
            for n, event, root in events:
                feed(provider, [event], first=n, root=root, session=root, at=AT + n)
            assert contents(provider) == ["tea"]
            check_index(provider)
            digests.append(list(provider.digest()))
    assert digests[0] == digests[1]


def test_a_rewind_reaches_its_own_lineage_only(provider):
    """An id names nobody else's event: not another person's, nor another lineage's."""
    other = type(ME)(agent="coder", user="bob")
    feed(provider, [turn("tea", ""), note("milk")], scope=other)
    feed(provider, [turn("wine", ""), note("water")], first=3, root="another")
    feed(provider, [undo(1, 2, 3, 4)], first=9)
    assert sorted(contents(provider)) == ["milk", "tea", "water", "wine"]
