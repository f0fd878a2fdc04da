"""Which session a hook speaks of, when Hermes says so late or not at all."""

import pytest
from memorybus_hermes.plugin.session_tracker import SessionTracker

COURSES: dict[str, list[tuple[str, str, str]]] = {
    # A hook's session, or a switch "to < from" ("/new" begins anew); then where the agent is, and
    # which session an end that still waits belongs to.
    "the /new race: the new session comes before its switch": [
        ("b", "b", "a"),
        ("/new b < a", "b", "b"),
    ],
    "a turn that waited behind the switch moves nothing": [
        ("/new b < a", "b", "b"),
        ("late a", "b", "b"),
    ],
    "an inline switch that overtook a queued one waits for it": [
        ("c < b", "c", "a"),
        ("/new b < a", "c", "c"),
    ],
    "back by an inline switch, then on by another: the old one's end still waits": [
        ("b", "b", "a"),
        ("a < b", "a", "a"),
        ("c < a", "c", "a"),
        ("/new d < c", "d", "a"),
        ("/new b < a", "d", "d"),
    ],
    "an inline /new from where the agent came back to is not the one that waits": [
        ("a < b", "a", "a"),
        ("/new c < a", "c", "a"),
        ("/new b < a", "c", "c"),
    ],
    "delivered switches move the ends along while the third session talks": [
        ("c", "c", "a"),
        ("/new b < a", "c", "b"),
        ("/new c < b", "c", "c"),
    ],
    "a compression in the new session does not pull the old one's end over": [
        ("b", "b", "a"),
        ("b < b", "b", "a"),
    ],
}


@pytest.mark.parametrize("course", COURSES)
def test_a_hook_is_its_own_session_s(course):
    """A switch that is delivered late, or overtaken, moves neither agent nor ends wrongly."""
    tracker = SessionTracker("a")
    for step, now, settled in COURSES[course]:
        words = step.split()
        if "<" in words:
            tracker.switch(words[-3], words[-1], reset=words[0] == "/new")
        elif words[0] == "late":
            assert tracker.resolve(words[-1]) == words[-1]
        else:
            assert tracker.enter(step) == step
            assert tracker.resolve("") == step
        assert (tracker.now, tracker.settled) == (now, settled), step


def test_without_a_hint_an_explicit_id_tells():
    """A memory write names the new session; what follows it is the new session's too."""
    tracker = SessionTracker("a")
    assert tracker.resolve("b") == "b"
    assert tracker.resolve("") == "b"


def test_what_is_remembered_is_bounded():
    """Thousands of sessions in one instance leave a few hundred ids (G10)."""
    tracker = SessionTracker("a")
    for number in range(2_000):
        tracker.enter(f"s{number}")
        tracker.switch(f"t{number}", f"s{number}", reset=True)
    assert len(tracker._met) <= 256
    assert len(tracker._ahead) <= 256
