"""What doctor says of rebuilds and verifications whose command is gone; as a table (G8)."""

import pytest
from memorybus.registry.instances import Instance, InstancePause, InstancesView, Live, command_pause
from memorybus_console.operations.doctor.instances import check_left_behind

NEXT = Instance(name="p@1", provider="p", purpose="rebuild")
CHECKED = Instance(name="p.verify@1", provider="p", purpose="verify")
COPY = Instance(name="may", provider="p")
HELD = command_pause("rebuild", "p", "p@1", "ann", 1)


def view(*copies: Instance, live: Live | None = None, **held: InstancePause) -> InstancesView:
    """Return the three hashes."""
    return InstancesView({one.name: one for one in copies}, {"p": live} if live else {}, held)


@pytest.mark.parametrize(
    ("seen", "ok", "said"),
    [
        (view(COPY), True, "no rebuild or verification was interrupted"),
        (view(NEXT, live=Live("p@1", "p")), True, "no rebuild or verification was interrupted"),
        (view(NEXT, live=Live("p@1", "p", leaving="p")), True, "p was swapped"),
        (view(NEXT), True, "p@1 follows the log unused"),
        (view(CHECKED), True, "p.verify@1 was left by a verification"),
        (view(NEXT, CHECKED, p=HELD), False, "stopped by a command that has ended"),
        (view(p=InstancePause("maintenance")), True, "no rebuild or verification was interrupted"),
    ],
)
def test_what_goes_on_unseen_is_named(seen, ok, said):
    """G8: what a command that is gone left is named with what to do; nothing while it lives."""
    found = check_left_behind(seen, ())
    assert (found.ok, found.found.startswith(said)) == (ok, True), found.found
    assert bool(found.fix) == (said != "no rebuild or verification was interrupted")
    assert check_left_behind(seen, ("p",)).found == "no rebuild or verification was interrupted"
