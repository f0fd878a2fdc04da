"""What is said of homes: moves, their obstacles and their warnings; and the doctor's check."""

from typing import Any

import msgspec
import pytest
from memorybus.registry.homes import Home
from memorybus_console.operations.providers.inventory import ListedProvider, check_homes
from memorybus_console.operations.providers.removal import (
    Move,
    describe_consequence,
    describe_move,
    describe_obstacle,
)

OTHER_HOME = Home("a" * 32, "kitchen", "/var/mb", "7")
HERE = Home("b" * 32, "garden", "/srv/mb", "8")


def move(**changes: Any) -> Move:
    """Return a move of `notes` from there to here, onto nothing."""
    plain = Move(
        provider="notes",
        delivery="transactional",
        origin=OTHER_HOME,
        target=HERE,
        needed=True,
        state="/srv/mb/providers/notes",
        state_found=False,
        lanes_owned=0,
        workers=[],
    )
    return msgspec.structs.replace(plain, **changes)


def instance(**changes: Any) -> ListedProvider:
    """Return `notes`, at home there, served."""
    plain = ListedProvider(
        name="notes",
        kind="builtin",
        delivery="transactional",
        placement="local",
        home=OTHER_HOME,
        here=False,
        lanes=16,
        lanes_owned=16,
        backlog=0,
    )
    return msgspec.structs.replace(plain, **changes)


def test_a_move_names_both_places():
    """An operator sees from where to where, also if there was no home."""
    assert describe_move(move()) == "notes: from /var/mb on kitchen to /srv/mb on garden"
    assert "from no home yet" in describe_move(move(origin=None))
    assert "an unknown directory on attic" in describe_move(move(origin=Home("c" * 32, "attic")))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"state_found": True}, "is taken for the state"),
        ({"delivery": "transactional"}, "from the log's beginning"),
        ({"delivery": "keyed"}, "stays behind"),
        ({"delivery": None}, "stays behind"),
    ],
)
def test_a_move_says_what_becomes_of_the_state(changes, says):
    """G4: where the lanes go on without their state depends on who keeps the checkpoint."""
    assert says in describe_consequence(move(**changes))
    assert describe_consequence(move(**changes)).startswith("Nothing is copied")


def test_owned_lanes_hold_up_a_move():
    """G4: while live workers own lanes a move waits, and names them; leases alone, too."""
    assert describe_obstacle(move()) == ""
    assert describe_obstacle(move(lanes_owned=16, needed=False)) == ""
    assert "stop these first: w-1, w-2" in describe_obstacle(
        move(lanes_owned=16, workers=["w-1", "w-2"])
    )
    assert "their leases expire soon" in describe_obstacle(move(lanes_owned=16))


@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        ({}, True),
        ({"here": True, "lanes_owned": 0}, True),  # another check's to tell
        ({"home": None, "here": None, "placement": "shared"}, True),
        ({"lanes_owned": 0}, False),
    ],
)
def test_the_doctor_sees_a_home_that_nobody_serves(changes, ok):
    """A local provider whose place is gone is description, with both remedies."""
    check = check_homes([instance(**changes)])
    assert check.ok is ok
    assert bool(check.fix) is not ok
    if not ok:
        assert "/var/mb on kitchen" in check.found
        assert "memorybus provider move notes" in check.fix
