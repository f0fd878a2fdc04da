"""Which session a hook speaks of, when Hermes says so late or not at all."""

from memorybus_hermes.plugin.session_tracker import SessionTracker


def test_the_new_session_comes_before_its_switch():
    """The /new race: the turn is the new session's, the end that still waits the old one's."""
    tracker = SessionTracker("a")
    assert tracker.enter("b") == "b"
    assert tracker.resolve("") == "b"
    assert tracker.settled == "a"
    tracker.switch("b", "a", reset=True)
    assert (tracker.now, tracker.settled) == ("b", "b")


def test_without_a_hint_an_explicit_id_tells():
    """A memory write names the new session; what follows it is the new session's too."""
    tracker = SessionTracker("a")
    assert tracker.resolve("b") == "b"
    assert tracker.resolve("") == "b"


def test_a_late_turn_of_the_old_session_moves_nothing():
    """A turn that waited behind the switch belongs to its own session, and the agent stays."""
    tracker = SessionTracker("a")
    tracker.switch("b", "a", reset=True)
    assert tracker.resolve("a") == "a"
    assert (tracker.now, tracker.settled) == ("b", "b")


def test_a_switch_that_overtook_another_waits_for_it():
    """Inline after queued: ends are the old session's until the queued switch has come."""
    tracker = SessionTracker("a")
    tracker.switch("c", "b", reset=False)
    assert (tracker.now, tracker.settled) == ("c", "a")
    tracker.switch("b", "a", reset=True)
    assert (tracker.now, tracker.settled) == ("c", "c")


def test_back_in_the_old_session_inline_switches_still_wait():
    """Back by an inline switch, then on by another: the end that waits is still the old one's."""
    tracker = SessionTracker("a")
    tracker.enter("b")
    tracker.switch("a", "b", reset=False)
    tracker.switch("c", "a", reset=False)
    assert (tracker.now, tracker.settled) == ("c", "a")
    tracker.switch("d", "c", reset=True)
    assert (tracker.now, tracker.settled) == ("d", "a")
    tracker.switch("b", "a", reset=True)
    assert (tracker.now, tracker.settled) == ("d", "d")


def test_a_new_session_begun_from_the_old_one_waits_too():
    """An inline /new from where the agent came back to is not the one that waits."""
    tracker = SessionTracker("a")
    tracker.switch("a", "b", reset=False)
    tracker.switch("c", "a", reset=True)
    assert (tracker.now, tracker.settled) == ("c", "a")
    tracker.switch("b", "a", reset=True)
    assert (tracker.now, tracker.settled) == ("c", "c")


def test_two_switches_wait_while_the_third_session_talks():
    """Delivered switches move the ends along; the agent stays where its newest hook was."""
    tracker = SessionTracker("a")
    tracker.enter("c")
    tracker.switch("b", "a", reset=True)
    assert (tracker.now, tracker.settled) == ("c", "b")
    tracker.switch("c", "b", reset=True)
    assert (tracker.now, tracker.settled) == ("c", "c")


def test_in_place_moves_nothing_but_the_agent():
    """A compression in the new session does not pull the old session's end over."""
    tracker = SessionTracker("a")
    tracker.enter("b")
    tracker.switch("b", "b", reset=False)
    assert (tracker.now, tracker.settled) == ("b", "a")


def test_what_is_remembered_is_bounded():
    """Thousands of sessions in one instance leave a few hundred ids (G10)."""
    tracker = SessionTracker("a")
    for number in range(2_000):
        tracker.enter(f"s{number}")
        tracker.switch(f"t{number}", f"s{number}", reset=True)
    assert len(tracker._met) <= 256
    assert len(tracker._ahead) <= 256
