"""Comparing a candidate with the live one while both go on, as far as that can be (G8)."""

from memorybus.clock import Clock
from memorybus.operations.rebuild.barrier import Barrier
from memorybus.operations.rebuild.compare import (
    NONE,
    Compared,
    Comparison,
    Differing,
    between,
    told,
)
from memorybus.operations.rebuild.waiting import LOOK


def agree(one: Comparison, barrier: Barrier, clock: Clock) -> Compared:
    """Compare the live one (the first of the two) with a candidate that follows it.

    Only if keys change faster than they can be read of both does the live one stand still, for as
    long as these keys are read.

    Raises:
        Stalled: one of them does not go on.
        InspectionFailed: one of them cannot be asked.
    """
    if not one.given:
        return NONE

    def pause() -> None:
        clock.sleep(LOOK)
        barrier.await_level(one.second, one.first)

    pause()
    keys, left = one.whole()
    left = one.rounds(left, pause)
    return told(keys, _at_one_place(one, barrier, left) if left else left)


def _at_one_place(one: Comparison, barrier: Barrier, differing: Differing) -> Differing:
    """Compare some keys of both at exactly the same place of the history."""
    keys, seen = sorted(differing), dict[str, str]()

    def look() -> None:
        seen.update(one.picked(one.first, keys))

    barrier.meet(one.second, one.first, one.provider, look)
    found = between(seen, one.picked(one.second, keys))
    barrier.open_end(one.second, one.provider)
    barrier.let_go(one.second)
    return found


def differing(compared: Compared, who: tuple[str, str, str]) -> str:
    """Return what a person is told whose rebuild is refused; of a provider, live and candidate."""
    provider, live, candidate = who
    words = {"differs": "differs", "missing": "not in it", "strange": "only in it"}
    named = "; ".join(f"{one.key} ({words[one.how]})" for one in compared.named)
    return (
        f"{candidate} differs from {live} in {compared.differing} of {compared.keys} keys: {named}."
        f" Nothing was swapped, {live} goes on. If it is the live state that is damaged, the same "
        f"command with --no-verify swaps; memorybus diff {live} {candidate} --query … shows what "
        f"both recall. {candidate} goes on beside it until memorybus rebuild --drop {provider} "
        f"--execute"
    )
