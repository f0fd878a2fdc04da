"""What `memorybus doctor` says of the providers' backends: what fails, and what they say."""

from collections.abc import Sequence

from memorybus.monitor import Status
from memorybus.surfaces.check import Check
from memorybus.surfaces.instances import Instance


def backends(status: Status) -> Check:
    """Check that no provider's backend seems to be down."""
    failing = [one for one in status.providers if one.failing]
    if not failing:
        return Check(name="backends", ok=True, found="no provider says that its calls fail")
    return Check(
        name="backends",
        ok=False,
        found="; ".join(f"{one.name}: {one.failing}" for one in failing),
        fix="mend the backend or its options; lanes wait, nothing is parked, and they go on by "
        "themselves",
    )


def notes(found: Sequence[Instance]) -> Check:
    """Tell what instances want people to know; nothing is wrong with that."""
    told = "; ".join(f"{one.name}: {one.note}" for one in found if one.note)
    return Check(name="notes", ok=True, found=told or "no provider has any")
