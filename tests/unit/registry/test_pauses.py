"""Holds: a command's stands over somebody's, and takes none of it away (G8)."""

from memorybus.registry.pauses import Hold, held_beside, held_for, held_over, paused, prepared

PAUSE = Hold("its disk is full", "ann", 1)
COMMAND = held_for("rebuild", "p", "p@2", "ben", 2)


def test_a_commands_hold_is_known_by_its_mark() -> None:
    """G8: only what a command holds is a command's: the words of a reason say nothing."""
    assert prepared(COMMAND) == "p@2"
    assert prepared(Hold(COMMAND.reason, "ann")) == prepared(PAUSE) == prepared(None) == ""


def test_a_pause_outlives_a_command() -> None:
    """G8: what somebody paused before or while a command held it is paused after that."""
    over, beside = held_over(PAUSE, COMMAND), held_beside(COMMAND, PAUSE)
    assert over == beside
    assert prepared(over) == "p@2"
    assert paused(over) == paused(PAUSE) == PAUSE
    assert held_over(over, COMMAND) == over
    assert paused(COMMAND) is paused(None) is None
    assert held_over(None, COMMAND) == held_over(COMMAND, COMMAND) == COMMAND


def test_who_paused_first_is_named() -> None:
    """A second pause changes nothing: the first reason stays."""
    later = Hold("again", "ben", 9)
    assert held_beside(None, later) == later
    assert held_beside(PAUSE, later) == PAUSE
    assert paused(held_beside(held_over(PAUSE, COMMAND), later)) == PAUSE
