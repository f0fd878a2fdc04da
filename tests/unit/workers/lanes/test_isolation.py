"""What a worker tries alone: one event at a time, and nobody waits for ever."""

from memorybus.testing import FakeClock
from memorybus_workers.lanes.isolation import IsolationProbe
from memorybus_workers.lanes.leases import Lease


def lease(name: str) -> Lease:
    """Return a lease that runs."""
    return Lease(key=name, lane=name, token="", epoch=1, worker="w", until=1e9)


def test_only_one_is_tried() -> None:
    """G6: an event that is tried alone is alone in its worker, also in its own lane."""
    alone, one, other = IsolationProbe(FakeClock()), lease("one"), lease("other")
    assert alone.begin(one, 1)
    assert not alone.begin(other, 1)
    assert not alone.begin(one, 2)
    alone.end(other, 1)
    alone.end(one, 2)
    assert not alone.begin(other, 1)
    alone.end(one, 1)
    assert alone.begin(other, 1)


def test_who_lost_its_lease_holds_up_nobody() -> None:
    """G6: a call that hangs is abandoned with its lease: the next one goes."""
    alone, hanging, next_one = IsolationProbe(FakeClock()), lease("hanging"), lease("next")
    assert alone.begin(hanging, 1)
    hanging.lost = True
    assert alone.begin(next_one, 1)
    alone.end(hanging, 1)
    assert alone.is_trying(next_one, 1)


def test_who_waited_long_goes_before_who_had_its_turn() -> None:
    """G6, G10: a provider with many slow events to try lets another one have its turn."""
    clock = FakeClock()
    alone, busy, waiting = IsolationProbe(clock), lease("busy"), lease("waiting")
    assert alone.begin(busy, 1)
    assert not alone.begin(waiting, 1)
    clock.advance(0.2)
    alone.end(busy, 1)
    assert not alone.begin(busy, 2)
    assert alone.begin(waiting, 1)
    alone.end(waiting, 1)
    assert alone.begin(busy, 2)


def test_quick_ones_are_not_interrupted_for_who_came_just_now() -> None:
    """G10: turns are not changed after every call: each change costs a wait."""
    clock = FakeClock()
    alone, busy, waiting = IsolationProbe(clock), lease("busy"), lease("waiting")
    assert alone.begin(busy, 1)
    assert not alone.begin(waiting, 1)
    alone.end(busy, 1)
    assert alone.begin(busy, 2)


def test_who_does_not_come_back_is_not_waited_for() -> None:
    """G10: a lane that was given up, or whose provider is paused, holds up nobody."""
    clock = FakeClock()
    alone, busy, gone = IsolationProbe(clock), lease("busy"), lease("gone")
    assert alone.begin(busy, 1)
    assert not alone.begin(gone, 1)
    alone.end(busy, 1)
    clock.advance(0.9)
    assert not alone.begin(busy, 2)
    clock.advance(0.2)
    assert alone.begin(busy, 2)
