"""What `memorybus doctor` says of the providers' backends: what fails, and what they say."""

from collections.abc import Sequence

from memorybus.health.finding import Check
from memorybus.health.monitor import Status
from memorybus.operations.providers.inventory import ListedProvider


def backends(status: Status) -> Check:
    """Check that no provider's backend seems to be down."""
    failing = [one for one in (*status.providers, *status.copies) if one.failing]
    if not failing:
        return Check(name="backends", ok=True, found="no provider says that its calls fail")
    return Check(
        name="backends",
        ok=False,
        found="; ".join(f"{one.name}: {one.failing}" for one in failing),
        fix="mend the backend or its options; lanes wait, nothing is parked, and they go on by "
        "themselves",
    )


def paused(status: Status) -> Check:
    """Tell which instances stand still on somebody's word; a hold that is forgotten costs much."""
    held = [one for one in (*status.providers, *status.copies) if one.paused]
    held = [one for one in held if not one.kept]  # it shall stand still
    if not held:
        return Check(name="paused", ok=True, found="no provider is")
    names = " or ".join(one.live or one.name for one in held)
    return Check(
        name="paused",
        ok=True,
        found="; ".join(f"{one.name}: {one.paused} ({one.backlog} events wait)" for one in held),
        fix=f"nothing is lost; to go on: memorybus provider resume {names}",
    )


def notes(found: Sequence[ListedProvider]) -> Check:
    """Tell what instances want people to know; nothing is wrong with that."""
    told = "; ".join(f"{one.name}: {one.note}" for one in found if one.note)
    return Check(name="notes", ok=True, found=told or "no provider has any")
