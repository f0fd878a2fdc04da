"""What a worker tries alone: one event at a time, and a call that hangs holds up nobody."""

from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from memorybus_workers.lanes.caution import IsolationProbe
from memorybus_workers.lanes.leases import Lease


def lease(name: str) -> Lease:
    """Return a lease that runs."""
    return Lease(OwnedLane(Keys(name), 0, "p", epoch=1), until=1e9)


def test_only_one_is_tried():
    """G6: an event that is tried alone is alone in its worker, also in its own lane."""
    alone, one, other = IsolationProbe(), lease("one"), lease("other")
    assert alone.begin(one, 1)
    assert not alone.begin(other, 1)
    assert not alone.begin(one, 2)
    alone.end(other, 1)
    alone.end(one, 2)
    assert not alone.begin(other, 1)
    alone.end(one, 1)
    assert alone.begin(other, 1)


def test_who_lost_its_lease_holds_up_nobody():
    """G6: a call that hangs is abandoned with its lease: the next one goes."""
    alone, hanging, next_one = IsolationProbe(), lease("hanging"), lease("next")
    assert alone.begin(hanging, 1)
    hanging.lost = True
    assert alone.begin(next_one, 1)
    alone.end(hanging, 1)
    assert not alone.begin(lease("third"), 1), "the next one is still tried"
