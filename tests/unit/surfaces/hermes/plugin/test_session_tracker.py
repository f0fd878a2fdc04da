"""Which session a hook speaks of, when Hermes says so late or not at all."""

from memorybus.surfaces.hermes.plugin.session_tracker import SessionTracker


def test_the_new_session_comes_before_its_switch() -> None:
    """The /new race: the turn is the new session's, the end that still waits the old one's."""
    whose = SessionTracker("a")
    assert whose.enter("b") == "b"
    assert whose.resolve("") == "b"
    assert whose.settled == "a"
    whose.switch("b", "a", reset=True)
    assert (whose.now, whose.settled) == ("b", "b")


def test_without_a_hint_an_explicit_id_tells() -> None:
    """A memory write names the new session; what follows it is the new session's too."""
    whose = SessionTracker("a")
    assert whose.resolve("b") == "b"
    assert whose.resolve("") == "b"


def test_a_late_turn_of_the_old_session_moves_nothing() -> None:
    """A turn that waited behind the switch belongs to its own session, and the agent stays."""
    whose = SessionTracker("a")
    whose.switch("b", "a", reset=True)
    assert whose.resolve("a") == "a"
    assert (whose.now, whose.settled) == ("b", "b")


def test_a_switch_that_overtook_another_waits_for_it() -> None:
    """Inline after queued: ends are the old session's until the queued switch has come."""
    whose = SessionTracker("a")
    whose.switch("c", "b", reset=False)
    assert (whose.now, whose.settled) == ("c", "a")
    whose.switch("b", "a", reset=True)
    assert (whose.now, whose.settled) == ("c", "c")


def test_back_in_the_old_session_inline_switches_still_wait() -> None:
    """Back by an inline switch, then on by another: the end that waits is still the old one's."""
    whose = SessionTracker("a")
    whose.enter("b")
    whose.switch("a", "b", reset=False)
    whose.switch("c", "a", reset=False)
    assert (whose.now, whose.settled) == ("c", "a")
    whose.switch("d", "c", reset=True)
    assert (whose.now, whose.settled) == ("d", "a")
    whose.switch("b", "a", reset=True)
    assert (whose.now, whose.settled) == ("d", "d")


def test_a_new_session_begun_from_the_old_one_waits_too() -> None:
    """An inline /new from where the agent came back to is not the one that waits."""
    whose = SessionTracker("a")
    whose.switch("a", "b", reset=False)
    whose.switch("c", "a", reset=True)
    assert (whose.now, whose.settled) == ("c", "a")
    whose.switch("b", "a", reset=True)
    assert (whose.now, whose.settled) == ("c", "c")


def test_two_switches_wait_while_the_third_session_talks() -> None:
    """Delivered switches move the ends along; the agent stays where its newest hook was."""
    whose = SessionTracker("a")
    whose.enter("c")
    whose.switch("b", "a", reset=True)
    assert (whose.now, whose.settled) == ("c", "b")
    whose.switch("c", "b", reset=True)
    assert (whose.now, whose.settled) == ("c", "c")


def test_in_place_moves_nothing_but_the_agent() -> None:
    """A compression in the new session does not pull the old session's end over."""
    whose = SessionTracker("a")
    whose.enter("b")
    whose.switch("b", "b", reset=False)
    assert (whose.now, whose.settled) == ("b", "a")


def test_what_is_remembered_is_bounded() -> None:
    """Thousands of sessions in one instance leave a few hundred ids (G10)."""
    whose = SessionTracker("a")
    for number in range(2_000):
        whose.enter(f"s{number}")
        whose.switch(f"t{number}", f"s{number}", reset=True)
    assert len(whose._met) <= 256
    assert len(whose._ahead) <= 256
