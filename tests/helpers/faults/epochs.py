"""Under which epoch this process owns each lane: what no contract tells a provider (G5).

Sinks ask here when they are called, so that the oracle can tell an owner's effect from that of one
that was replaced meanwhile. A worker that loads a sink takes its leases through `watched`.
"""

import functools
from collections.abc import Callable
from typing import Any

from memorybus_workers.lanes.leases import Leases

_owned: dict[tuple[str, int], int] = {}


def of(provider: str, partition: int) -> int:
    """Return the epoch of the last lease that this process took of a lane; 0 if it took none."""
    return _owned.get((provider, partition), 0)


def watched(acquire: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Leases.acquire` as it was, but that it notes the epoch of what it takes."""

    @functools.wraps(acquire)
    def noted(leases: Any, redis: Any, provider: str, partition: int, *rest: Any) -> Any:
        lease = acquire(leases, redis, provider, partition, *rest)
        if lease is not None:
            _owned[(provider, partition)] = lease.lane.epoch
        return lease

    return noted


def watch() -> None:
    """Note from now on what this process takes; called as often as one likes."""
    if not hasattr(Leases.acquire, "__wrapped__"):
        Leases.acquire = watched(Leases.acquire)
