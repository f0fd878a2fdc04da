"""How carefully a lane goes on after an owner died."""

from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from memorybus_workers.lanes.caution import SMALL_BATCH, Caution, IsolationProbe
from memorybus_workers.lanes.leases import Lease


def test_without_a_death_nothing_is_noted():
    """G6: a lane whose owners lived goes on in full batches, and notes nothing."""
    calm = Caution({}, 0)
    assert not calm.is_needed(0)


def test_up_to_where_the_dead_came_small_batches_are_noted():
    """G6: an innocent death costs a lane small batches up to where its owner may have come."""
    caution = Caution({}, upto=500)
    assert [caution.is_needed(n) for n in (0, 499, 500)] == [True, True, False]
    assert caution.batch_size(500) == SMALL_BATCH
    caution.skip(100)
    assert caution.is_needed(599), "numbers that the log lacks do not count"
    assert caution.batch_size(1) == 1
    assert caution.begin([1, 2])
    assert not caution.begin([2]), "it is noted already"
    assert caution.calling == {1: 1, 2: 1}


def test_what_was_called_at_a_death_goes_alone():
    """G6: the events of a note that an owner left are tried one by one, and nothing else is."""
    caution = Caution({7: 1, 8: 1}, upto=0)
    assert caution.is_needed(600)
    assert caution.batch_size(500) == 1
    assert caution.begin([7])
    assert caution.calling == {7: 2}, "as the next owner shall find it if this one dies, too"
    assert caution.survive([7]), "before another one is tried"
    assert (caution.suspects, caution.calling) == ({8: 1}, {})
    caution.forget(lambda n: n <= 8)
    assert not caution.is_needed(600)


def test_a_note_is_cleared_when_nothing_is_called_any_more():
    """G6: of several calls side by side the last one that returns clears the note."""
    caution = Caution({}, upto=9)
    caution.begin([1, 2])
    assert [caution.survive([n]) for n in (1, 2, 2, 3)] == [False, True, False, False]


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
