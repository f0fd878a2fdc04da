"""Holds: a command's stands over somebody's, and takes none of it away (G8)."""

from memorybus.registry.instances import (
    InstancePause,
    beside_command,
    command_pause,
    lasting_pause,
    over_lasting,
    prepared_copy,
)

PAUSE = InstancePause("its disk is full", "ann", 1)
COMMAND = command_pause("rebuild", "p", "p@2", "ben", 2)


def test_a_commands_hold_is_known_by_its_mark():
    """G8: only what a command holds is a command's: the words of a reason say nothing."""
    assert prepared_copy(COMMAND) == "p@2"
    assert (
        prepared_copy(InstancePause(COMMAND.reason, "ann"))
        == prepared_copy(PAUSE)
        == prepared_copy(None)
        == ""
    )


def test_a_pause_outlives_a_command():
    """G8: what somebody paused before or while a command held it is paused after that."""
    over, beside = over_lasting(PAUSE, COMMAND), beside_command(COMMAND, PAUSE)
    assert over == beside
    assert prepared_copy(over) == "p@2"
    assert lasting_pause(over) == lasting_pause(PAUSE) == PAUSE
    assert over_lasting(over, COMMAND) == over
    assert lasting_pause(COMMAND) is lasting_pause(None) is None
    assert over_lasting(None, COMMAND) == over_lasting(COMMAND, COMMAND) == COMMAND


def test_who_paused_first_is_named():
    """A second pause changes nothing: the first reason stays."""
    later = InstancePause("again", "ben", 9)
    assert beside_command(None, later) == later
    assert beside_command(PAUSE, later) == PAUSE
    assert lasting_pause(beside_command(over_lasting(PAUSE, COMMAND), later)) == PAUSE
