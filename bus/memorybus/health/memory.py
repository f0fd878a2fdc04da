"""Makes the input of the forecast of Redis's memory from INFO and the partitions' figures; pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memorybus.config.settings import Settings
from memorybus.log.entry import entry_ms
from memorybus.log.forecast import LimitFrom, MemoryLoad, PartitionGrowth, growth_of
from memorybus.log.inspection import PartitionState


def memory_load(
    info: Mapping[str, Any], states: Iterable[PartitionState], left: int | None
) -> MemoryLoad:
    """Return the input of the forecast.

    Args:
        info: INFO's sections `memory` and `persistence`.
        states: the partitions.
        left: the machine's free bytes if Redis runs on ours; None otherwise.
    """
    partitions = list(states)
    used = int(info["used_memory"])
    limit, limit_from = limit_of(info, used, left)
    return MemoryLoad(
        used=used,
        limit=limit,
        limit_from=limit_from,
        bytes_per_event=bytes_per_event(partitions),
        growths=growth_of(
            [g for g in map(_growth, partitions) if g],
            max((s.now_ms for s in partitions), default=0),
        ),
    )


def limit_of(info: Mapping[str, Any], used: int, left: int | None) -> tuple[int | None, LimitFrom]:
    """Return how many bytes Redis may use (None if that is unknown), and the source of that."""
    if limit := int(info.get("maxmemory", 0)):
        return limit, "maxmemory"
    if left is not None:
        return used + left, "available"
    if total := int(info.get("total_system_memory", 0)):
        return total, "machine"
    return None, "unknown"


def bytes_per_event(states: Iterable[PartitionState]) -> float:
    """Return the bytes that an event takes in its stream, and its id in the window of ids."""
    partitions = list(states)
    events, ids = sum(s.view.length for s in partitions), sum(s.ids for s in partitions)
    stream = sum(s.size for s in partitions) / events if events else 0.0
    return stream + (sum(s.ids_size for s in partitions) / ids if ids else 0.0)


def bounded_load(
    load: MemoryLoad, states: Sequence[PartitionState], settings: Settings
) -> MemoryLoad:
    """Return a load that is bounded because the archive takes what leaves the hot window."""
    events = sum(state.view.length for state in states)
    log = sum(state.size + 2 * state.ids_size for state in states)
    return msgspec.structs.replace(
        load,
        kept_for=max(settings.hot_window, settings.seal_after + settings.segment_age),
        fixed=max(0, load.used - log) + _bytes_of_ids(load, states, settings),
        bytes_per_event=sum(state.size for state in states) / events if events else 0.0,
    )


def _bytes_of_ids(load: MemoryLoad, states: Sequence[PartitionState], settings: Settings) -> int:
    """Return the bytes that two full windows of event ids will take at the present rate."""
    ids = sum(state.ids for state in states)
    rate = max((g.events / g.seconds for g in load.growths if g.events is not None), default=0.0)
    most = min(rate * settings.dedupe_window, settings.dedupe_max_ids * len(states))
    return round(2 * most * sum(state.ids_size for state in states) / ids) if ids else 0


def available_bytes(meminfo: str) -> int | None:
    """Return the bytes that programs can still get, from Linux's ``/proc/meminfo``."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _growth(state: PartitionState) -> PartitionGrowth | None:
    """Return how a partition grew; None if it never held an event."""
    view = state.view
    if view.first is None:
        return PartitionGrowth(view.n, 0, state.now_ms, state.numbers) if view.n else None
    at = entry_ms(view.first.entry)
    return PartitionGrowth(view.n, view.first.n, at, state.numbers)
