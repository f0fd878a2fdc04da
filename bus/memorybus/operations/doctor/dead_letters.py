"""What `memorybus doctor` says of dead letters: memories that a provider lacks until you act."""

from memorybus.health.finding import Check
from memorybus.health.monitor import Status


def dead_letters(status: Status) -> Check:
    """Check that no provider refused anything for good (G6)."""
    waiting = [one for one in (*status.providers, *status.copies) if one.dead_letters]
    if not waiting:
        return Check(name="dead letters", ok=True, found="none")
    listed = ", ".join(
        f"{one.name} ({one.dead_letters} events, {one.parked_keys} keys)" for one in waiting
    )
    return Check(
        name="dead letters",
        ok=False,
        found=f"refused, or waiting behind what was refused: {listed}",
        fix="see why: memorybus dlq ls --group error; then: memorybus dlq retry, edit or discard",
    )
