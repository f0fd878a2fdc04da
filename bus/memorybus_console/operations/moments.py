"""Moments of the history, as people write them, and the wait until lanes have reached one."""

import re
from collections.abc import Iterable, Mapping

from memorybus.clock import Clock
from memorybus.errors import ConfigError
from memorybus.history.history import History
from memorybus.text.display import iso
from memorybus.text.times import parse_timestamp

from memorybus_console.operations.stores import Stores

_PLACE = re.compile(r"p\d{2,}:\d+|[0-9a-f]{32}")


def moment_of(text: str) -> int | str:
    """Return a moment as `History.places` expects it.

    Args:
        text: ISO 8601 (UTC if it names no zone; a date is its first moment), ``p07:1234`` or an
            event's id.

    Raises:
        ConfigError: the text is none of these.
    """
    if _PLACE.fullmatch(text):
        return text
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not a time, position or event: give an ISO time (2026-05-31T18:00), a "
            "position (p07:1234) or an event's id"
        ) from error


def moment_text(kept: str) -> str:
    """Return a moment for people: a time in UTC, a position or an id unchanged.

    Args:
        kept: the moment as a record has it: milliseconds, ``p07:1234`` or an event's id.
    """
    return kept if _PLACE.fullmatch(kept) else iso(int(kept)) or kept


def numbers_upto(history: History, text: str) -> dict[int, int]:
    """Return the last number of each partition up to and including a moment.

    Raises:
        ConfigError: the text cannot be read, or the history does not hold the moment.
    """
    return history.places(moment_of(text))


def numbers_before(history: History, text: str) -> dict[int, int]:
    """Return the last number of each partition before a moment.

    Raises:
        ConfigError: the text cannot be read, or the history does not hold the moment.
    """
    return history.places(moment_of(text), inclusive=False)


PartitionNumbers = Mapping[int, int]  # dense numbers by partition

_POLL_SECONDS = 0.1  # seconds between two reads of the lanes


def count_behind(slow: PartitionNumbers, fast: PartitionNumbers) -> int:
    """Return by how many events `slow` lags behind `fast`, over all partitions; pure."""
    return sum(max(0, n - slow.get(p, 0)) for p, n in fast.items())


def read_heads(stores: Stores) -> PartitionNumbers:
    return {head.partition: head.n for head in stores.history.log.heads()}


def read_numbers(stores: Stores, instance: str) -> PartitionNumbers:
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
