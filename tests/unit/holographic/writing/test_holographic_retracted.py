"""What was taken back: its utterances and notes go, and whatever else said the same stays."""

from collections.abc import Sequence
from typing import Any

import pytest
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Event,
    SessionSwitched,
    ToolCalled,
)
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import (
    AT,
    ME,
    add,
    check_index,
    context,
    feed,
    opened,
    shown,
    stored,
    texts,
    turn,
)

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


def contents(provider: HolographicProvider) -> list[str]:
    """Return the text of all facts."""
    return [row[0] for row in stored(provider)]


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


def test_the_same_words_said_again_stay(provider):
    """An undone turn that was said again is another event: its words stay."""
    feed(provider, [turn(PIN, "ok"), undo(1), turn(PIN, "ok")])
    assert contents(provider) == [PIN, "ok"]


def test_an_entry_of_a_store_stays(provider):
    """A memory write is not undone by a rewind: its order key is another."""
    feed(provider, [add("tea"), undo(1)])
    assert contents(provider) == ["tea"]


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
