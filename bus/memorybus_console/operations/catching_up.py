"""Measures how far instances lag behind the log, and waits until they have caught up."""

from collections.abc import Iterable, Mapping

from memorybus.clock import Clock

from memorybus_console.operations.stores import Stores

PartitionNumbers = Mapping[int, int]
"""Dense numbers by partition."""

_POLL_SECONDS = 0.1
"""Seconds between two reads of the lanes."""


def count_behind(slow: PartitionNumbers, fast: PartitionNumbers) -> int:
    """Return by how many events `slow` lags behind `fast`, over all partitions; pure."""
    return sum(max(0, n - slow.get(p, 0)) for p, n in fast.items())


def read_heads(stores: Stores) -> PartitionNumbers:
    """Return where the log ends now."""
    return {head.partition: head.n for head in stores.history.log.heads()}


def read_numbers(stores: Stores, instance: str) -> PartitionNumbers:
    """Return the positions of an instance's lanes."""
    return dict(enumerate(lane.n for lane in stores.lanes.states(instance)))


def await_lanes(
    stores: Stores, instances: Iterable[str], wait: float, clock: Clock
) -> dict[str, int]:
    """Wait until instances have applied what the log holds now.

    Args:
        wait: the most seconds to wait.

    Returns:
        The instances that lag, each with the number of events that it lacks.
    """
    until, heads, waiting = clock.monotonic() + wait, read_heads(stores), tuple(instances)
    while behind := _find_behind(stores, waiting, heads):
        if clock.monotonic() >= until:
            break
        clock.sleep(_POLL_SECONDS)
    return behind


def _find_behind(
    stores: Stores, instances: Iterable[str], heads: PartitionNumbers
) -> dict[str, int]:
    lacks = {
        name: count_behind(read_numbers(stores, name), _wanted(stores, name, heads))
        for name in instances
    }
    return {name: left for name, left in lacks.items() if left}


def _wanted(stores: Stores, name: str, heads: PartitionNumbers) -> PartitionNumbers:
    """Return where an instance's lanes should be: no further than the end of its plan."""
    instance = stores.instances.get(name)
    if instance is None:
        return heads
    ends = {partition: instance.plan.end(partition) for partition in heads}
    return {p: n if (end := ends[p]) is None else min(n, end) for p, n in heads.items()}
