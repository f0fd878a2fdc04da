"""What `memorybus doctor` says of providers whose calls fail while none succeeds."""

from memorybus.monitor import Status
from memorybus.surfaces.check import Check


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
