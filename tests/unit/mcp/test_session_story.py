"""The story of a session that a host of a model reads."""

from memorybus.events import Envelope, Position, Scope, SessionRef, TurnCompleted
from memorybus.log.entry import LoggedEvent
from memorybus_console.mcp.story import STORY_CHARS, tell


def turn(n, text):
    """Return a turn of a log."""
    envelope = Envelope(
        id=f"{n:032x}",
        at=1_700_000_000_000 + n,
        scope=Scope(agent="a", user="u"),
        session=SessionRef(id="s", root="s"),
        key="k",
        event=TurnCompleted(user=text, assistant="ok"),
    )
    return LoggedEvent(Position(0, f"{n}-0", n), envelope)


def test_a_long_story_leaves_out_what_came_first():
    """The newest turns are whole, the oldest first, and "…" stands for what is left out."""
    story = tell([turn(3, "third"), turn(2, "second"), turn(1, "x" * STORY_CHARS)])
    assert story.startswith("…\n\n[")
    assert story.index("second") < story.index("third")
    assert "xx" not in story


def test_one_turn_that_is_too_long_is_cut():
    """A host gets the beginning of it, not nothing."""
    story = tell([turn(1, "x" * STORY_CHARS)])
    assert len(story) == STORY_CHARS + 1
    assert story.endswith("x…")
