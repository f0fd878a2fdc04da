"""What becomes of the turns of one call."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from memorybus.errors import Permanent, Transient
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.log.entry import LoggedEvent
from memorybus_providers.base import HookContext, MemoryProvider
from memorybus_workers.apply.bulk import send_turns, sort_outcomes

BAD = Transient("not now")


def turn(name: str, key: str) -> LoggedEvent:
    """Return an entry of which only id and key matter."""
    envelope = SimpleNamespace(id=name, key=key, event=TurnCompleted(user=name))
    return cast("LoggedEvent", SimpleNamespace(envelope=envelope))


def context(event: LoggedEvent) -> HookContext:
    """Return a context."""
    session = SessionRef(id="s", root="s")
    return HookContext(Scope(), session, event.envelope.id, Position(0, "1-1", 1), 0, 5.0)


def sent(answer: Any, *events: LoggedEvent) -> Any:
    """Send events to a provider that answers so."""
    return send_turns(
        cast("MemoryProvider", SimpleNamespace(sync_turns=lambda _: answer)), events, context
    )


def test_what_stands_behind_a_failure_stays_open():
    """G3: a turn behind one of its key that failed is not done, though it was not named."""
    one, two, other, three = turn("1", "a"), turn("2", "a"), turn("3", "b"), turn("4", "a")
    found = sort_outcomes((one, two, other, three), {"2": BAD})
    assert found.done == [one, other]
    assert found.failed == [(two, BAD)]
    assert found.behind == [three]


def test_of_one_key_the_first_failure_counts():
    """G3: a second failure of a key is what follows from the first: it is tried behind it."""
    one, two = turn("1", "a"), turn("2", "a")
    found = sort_outcomes((one, two), {"2": BAD, "1": BAD})
    assert (found.done, found.failed, found.behind) == ([], [(one, BAD)], [two])


@pytest.mark.parametrize("answer", [None, ["1"], {"9": BAD}, {"1": "not now"}])
def test_an_answer_that_is_none_is_refused(answer):
    """An answer that does not say what failed leaves open what is remembered."""
    with pytest.raises(Permanent):
        sent(answer, turn("1", "a"))


def test_what_failed_is_what_the_provider_names():
    """The answer of a provider that keeps the rules goes on as it is."""
    assert sent({"1": BAD}, turn("1", "a"), turn("2", "a")) == {"1": BAD}
