"""Calls: what the watch knows of a provider's threads, and what is remembered of failing events."""

import random

import pytest
from memorybus.testing import FakeClock
from memorybus_workers.calls.troubles import Slot, Troubles


def troubles(clock: FakeClock | None = None, attempts: int = 2) -> Troubles:
    """Return a memory without troubles."""
    return Troubles(clock or FakeClock(), random.Random(1), attempts)


def test_a_call_hangs_after_its_time() -> None:
    """Only a call in progress can hang, and only past its time-out (G9)."""
    clock = FakeClock()
    slot = Slot(clock)
    clock.advance(100)
    assert slot.hanging_call(5.0) == ""
    slot.begin("e1")
    clock.advance(4.9)
    assert slot.hanging_call(5.0) == ""
    clock.advance(0.2)
    assert slot.hanging_call(5.0) == "e1"
    slot.end()
    assert slot.hanging_call(5.0) == ""


def test_a_call_with_a_limit_of_its_own_hangs_after_that() -> None:
    """A hook's own limit holds for its call, and not for the next one (G9, G10)."""
    clock = FakeClock()
    slot = Slot(clock)
    slot.begin("slow", "lane", 120.0)
    clock.advance(119)
    assert slot.hanging_call(5.0) == ""
    assert not slot.abandon(5.0)
    clock.advance(2)
    assert slot.hanging_call(5.0) == "slow"
    slot.end()
    for begin in (slot.begin, slot.enter):
        begin("the next")
        clock.advance(6)
        assert slot.hanging_call(5.0) == "the next"


def test_opening_and_committing_are_watched_too() -> None:
    """A call that concerns no event has a deadline like any other (G9)."""
    clock = FakeClock()
    slot = Slot(clock)
    slot.enter("a transaction's commit")
    clock.advance(6)
    assert slot.hanging_call(5.0) == "a transaction's commit"
    assert not slot.in_hook


def test_a_failure_is_the_events_own_only_inside_its_call() -> None:
    """What fails between the calls (opening, committing) is nobody's fault."""
    slot = Slot(FakeClock())
    assert not slot.end_interrupted()
    slot.begin("e1")
    assert slot.end_interrupted()
    assert not slot.end_interrupted()
    slot.enter("open")
    assert not slot.end_interrupted()


@pytest.mark.parametrize(
    ("served", "backend_up", "counted"), [(0, True, 1), (1, True, 3), (1, False, 1), (0, False, 1)]
)
def test_failures_count_while_the_backend_serves_others(
    served: int, backend_up: bool, counted: int
) -> None:
    """G6: nothing is parked because a backend is down: then nothing tells a bad event from it."""
    known = troubles()
    known.note_failure("e1", backend_up=True)
    known.served += served
    known.note_failure("e1", backend_up=backend_up)
    assert known.note_failure("e1", backend_up=backend_up).tries == counted


def test_an_event_that_always_hangs_is_spent() -> None:
    """G6: what is known of hangs passes to the next instance; after `attempts` it is parked."""
    known = troubles()
    known.note_hang("e1", backend_up=True)
    heir = known.copy()
    assert not heir.has_hung_too_often("e1")
    heir.served += 1
    heir.note_hang("e1", backend_up=True)
    assert heir.has_hung_too_often("e1")
    assert not heir.has_hung_too_often("e2")
    assert not known.has_hung_too_often("e1")


def test_an_event_that_hung_lets_others_go_first() -> None:
    """G6: the wait of an event that hung begins when its lane comes by it again."""
    clock = FakeClock()
    known = troubles(clock)
    known.note_hang("e1", backend_up=True)
    clock.advance(100)
    until = known.retry_at("e1")
    assert until is not None
    assert until > clock.monotonic()
    clock.advance(100)
    assert known.retry_at("e1") is None
    assert known.retry_at("e2") is None


def test_what_is_settled_is_forgotten() -> None:
    """G10: nothing is kept of events that are applied or parked."""
    known = troubles()
    known.note_failure("e1", backend_up=True)
    assert known.has_any(["e0", "e1"])
    known.settle("e1")
    assert not known.has_any(["e0", "e1"])
    assert known.get("e1") is None
