"""The list of an operation's calls, with which the bounds of two walks are tested."""

from helpers.walks import walk_of
from memorybus.ids import derived_id


def test_only_calls_of_the_package_are_listed():
    """Our own functions are listed in their order, and neither tests nor libraries are."""
    walk = walk_of(lambda: derived_id("turn", 1))
    assert walk.calls[0] == "memorybus.ids:derived_id"
    assert walk.modules == {"memorybus.ids"}
    assert walk_of(lambda: sorted([1])).calls == ()
