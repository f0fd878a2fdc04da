"""How carefully a lane goes on after an owner died."""

from memorybus_workers.lanes.caution import SMALL_BATCH, Caution


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
