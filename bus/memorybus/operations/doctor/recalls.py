"""The doctor's look at recalls: do they fail, do they pile up."""

from collections.abc import Sequence
from datetime import datetime

from memorybus.health.finding import Check
from memorybus.health.recalls import JobsStatus
from memorybus.recall.breaker import ENDURED
from memorybus.recall.queue import LIFE, LONGEST

_NAME = "recalls"
_LATE = LIFE / 2


def recalls(jobs: Sequence[JobsStatus], now_ms: int) -> Check:
    """Check that recalls are answered, and soon.

    Args:
        jobs: the queues, as the status tells them.
        now_ms: this machine's wall time in milliseconds.
    """
    failing = [one for one in jobs if one.failing]
    if failing:
        listed = "; ".join(_failing(one) for one in failing)
        return Check(
            name=_NAME,
            ok=all(one.failing < ENDURED for one in failing),
            found=listed,
            fix="look at the backend and its options; asking goes on by itself once it answers",
        )
    late = [one for one in jobs if one.queued >= LONGEST or _age(one, now_ms) > _LATE]
    if late:
        listed = ", ".join(f"{one.queue} ({one.queued} wait)" for one in late)
        return Check(
            name=_NAME,
            ok=False,
            found=f"too many wait: {listed}; what waits {LIFE} s is dropped",
            fix="run more recall processes: memorybus worker --jobs 2",
        )
    waiting = sum(one.queued for one in jobs)
    return Check(name=_NAME, ok=True, found=f"{waiting} wait" if waiting else "none wait")


def _failing(one: JobsStatus) -> str:
    pauses = ", asking pauses" if one.paused else ""
    return f"{one.queue}: {one.failing} failed in a row{pauses}, the last with: {one.error}"


def _age(one: JobsStatus, now_ms: int) -> float:
    """Return the seconds the oldest has waited, if clocks agree."""
    if one.oldest_at is None:
        return 0.0
    return now_ms / 1000 - datetime.fromisoformat(one.oldest_at).timestamp()
