"""Estimates how long the memory of Redis will last at the present rate; pure.

The rate is that of the log: the events of the last hour or of the last ten minutes, whichever came
faster. While the archive works, an event stays for a known time; otherwise every event stays.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

AGES_MS = (3_600_000, 600_000)
"""The times over which growth is measured (milliseconds), longest first."""

_HOUR = 3_600.0
_DAY = 86_400.0
_LONGEST_FORECAST = 365_000 * _DAY  # the longest forecast, a thousand years
WARN_WITHIN = 3 * _DAY
FAIL_WITHIN = _DAY
FULL_SHARE = 0.95
"""If this share of the limit is used, the memory counts as nearly full, whatever the rate."""

AOF_FRAME = 64
"""Bytes by which an event is larger in the append-only file than in memory (measured: 30-54)."""

LimitFrom = Literal["maxmemory", "available", "machine", "unknown"]
Trend = Literal["growing", "no growth", "not enough history"]
FillLevel = Literal["ok", "warning", "critical"]


class Growth(msgspec.Struct, frozen=True):
    """How many events came in the last `seconds`; None if the log does not reach back so far."""

    seconds: float
    events: int | None


class PartitionGrowth(msgspec.Struct, frozen=True):
    """A partition that holds events.

    Attributes:
        n: its last number.
        first_n: its first entry's number.
        first_at: when that entry came (the server's wall time, milliseconds).
        numbers: the number of the first entry not older than each of `AGES_MS`; None for none.
    """

    n: int
    first_n: int
    first_at: int
    numbers: tuple[int | None, ...]

    def since(self, index: int) -> int:
        """Return how many events came within the age of this index."""
        number = self.numbers[index]
        return 0 if number is None else max(0, self.n - number + 1)


class MemoryLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The figures from which the forecast is made.

    Attributes:
        used: bytes that Redis uses.
        limit: bytes it may use; None if nobody knows.
        limit_from: where the limit comes from. "maxmemory": the server's setting; "available": what
            it uses plus what this machine, where it runs, has left; "machine": all memory of its
            machine, whatever else runs there.
        bytes_per_event: bytes of the streams and the remembered ids; 0.0 for an empty log.
        growths: how many events came within each of `AGES_MS`.
        kept_for: seconds that an event stays in the log; None while nothing is trimmed.
        fixed: bytes used for other things than the log.
    """

    used: int
    limit: int | None
    limit_from: LimitFrom
    bytes_per_event: float
    growths: tuple[Growth, ...]
    kept_for: float | None = None
    fixed: int = 0


class Memory(msgspec.Struct, frozen=True):
    """How long the memory lasts, as `status --json` prints it.

    Attributes:
        used: bytes that Redis uses.
        limit: bytes it may use; null if nobody knows.
        limit_from: where the limit comes from (see `MemoryLoad`).
        bytes_per_event: how many bytes one event takes.
        events_per_hour: the rate; null if the log is too young.
        measured_over: seconds over which the rate was measured; null if the log is too young.
        trend: "growing", "no growth" or "not enough history".
        seconds_left: seconds until the limit is reached; null if the memory does not grow or has no
            known limit, or if the archive takes enough older events before that.
        kept_for: seconds that an event stays in Redis; null while nothing is trimmed.
        settles_at: bytes that will be used at the present rate while older events go to the
            archive; null if they do not, or nobody knows.
    """

    used: int
    limit: int | None
    limit_from: LimitFrom
    bytes_per_event: float
    events_per_hour: float | None
    measured_over: float | None
    trend: Trend
    seconds_left: float | None
    kept_for: float | None = None
    settles_at: int | None = None


class Disk(msgspec.Struct, frozen=True):
    """How long the disk of the embedded server lasts.

    Attributes:
        free: free bytes.
        aof: bytes of the append-only file; a rewrite needs about as many again, for a while.
        seconds_left: seconds until a rewrite no longer fits; null if the file does not grow.
    """

    free: int
    aof: int
    seconds_left: float | None


def forecast_disk(free: int, aof: int, memory: Memory) -> Disk:
    """Return how long the disk will last at the rate of the memory."""
    bounded = memory.settles_at is not None and memory.seconds_left is None
    rate = 0.0 if bounded else (memory.events_per_hour or 0.0) / _HOUR
    growth = rate * (memory.bytes_per_event + AOF_FRAME)
    return Disk(free, aof, _seconds_to_fill(free - aof, growth))


def growth_of(parts: Sequence[PartitionGrowth], now_ms: int) -> tuple[Growth, ...]:
    """Return how much all partitions grew, over each of `AGES_MS`.

    A time counts only if some partition reaches back further, and if no partition has lost entries
    of that time.
    """
    return tuple(
        Growth(age / 1000, _count_events_since(parts, now_ms - age, index))
        for index, age in enumerate(AGES_MS)
    )


def _count_events_since(parts: Sequence[PartitionGrowth], since: int, index: int) -> int | None:
    older = [part.first_at <= since for part in parts]
    if not any(older) or not all(
        o or part.first_n == 1 for o, part in zip(older, parts, strict=True)
    ):
        return None
    return sum(part.since(index) for part in parts)


def forecast_memory(load: MemoryLoad) -> Memory:
    """Return how long the memory will last at the present rate."""
    known = [(g.events / g.seconds, g.seconds) for g in load.growths if g.events is not None]
    rate, over = max(known, default=(None, None))
    return Memory(
        used=load.used,
        limit=load.limit,
        limit_from=load.limit_from,
        bytes_per_event=round(load.bytes_per_event, 1),
        events_per_hour=None if rate is None else round(rate * _HOUR, 1),
        measured_over=over,
        trend="not enough history" if rate is None else "growing" if rate else "no growth",
        seconds_left=_seconds_left(load, rate),
        kept_for=load.kept_for,
        settles_at=_settles_at(load, rate),
    )


def first_to_fill(memories: Sequence[Memory]) -> Memory:
    """Return the memory that will be full first, of several servers."""

    def urgency(memory: Memory) -> tuple[bool, float, float]:
        left, used = memory.seconds_left, memory.used / (memory.limit or float("inf"))
        full = fill_level(None, memory.used, memory.limit) == "critical"
        return (not full, float("inf") if left is None else left, -used)

    return min(memories, key=urgency)


def _settles_at(load: MemoryLoad, rate: float | None) -> int | None:
    if load.kept_for is None or rate is None:
        return None
    return load.fixed + round(rate * load.bytes_per_event * load.kept_for)


def _seconds_left(load: MemoryLoad, rate: float | None) -> float | None:
    settled = _settles_at(load, rate)
    if settled is not None and load.limit is not None and settled < FULL_SHARE * load.limit:
        return None
    growth = (rate or 0.0) * load.bytes_per_event
    return None if load.limit is None else _seconds_to_fill(load.limit - load.used, growth)


def _seconds_to_fill(room: int, growth: float) -> float | None:
    """Return the seconds after which room is filled; None if it never is."""
    if not growth:
        return None
    return round(min(max(0, room) / growth, _LONGEST_FORECAST), 1)


def fill_level(seconds_left: float | None, used: int, limit: int | None) -> FillLevel:
    """Return the severity: critical if full within a day or nearly full; a warning within three."""
    if limit is not None and used >= FULL_SHARE * limit:
        return "critical"
    if seconds_left is None or seconds_left >= WARN_WITHIN:
        return "ok"
    return "warning" if seconds_left >= FAIL_WITHIN else "critical"


def describe_memory(memory: Memory) -> str:
    """Return the forecast in words."""
    return f"{_room(memory)}; {_outlook(memory)}"


def describe_disk(disk: Disk) -> str:
    """Return the forecast of the disk in words."""
    room = f"{format_size(disk.free)} free, the append-only file has {format_size(disk.aof)}"
    if disk.seconds_left is None:
        return room
    return f"{room}; at the present rate no rewrite fits in {format_duration(disk.seconds_left)}"


def _room(memory: Memory) -> str:
    if memory.limit is None:
        return f"{format_size(memory.used)} used, the limit is unknown"
    limited_by = {
        "maxmemory": "maxmemory",
        "available": "what this machine has left for it",
        "machine": "all memory of its machine, whatever else runs there",
        "unknown": "unknown",
    }
    used, limit = format_size(memory.used), format_size(memory.limit)
    return f"{used} of {limit} used ({limited_by[memory.limit_from]})"


def _outlook(memory: Memory) -> str:
    if memory.kept_for is None or memory.seconds_left is not None:
        return _unbounded(memory)
    goes = f"what is older than {format_duration(memory.kept_for)} goes to the archive"
    if memory.settles_at is None or not memory.bytes_per_event:
        return goes
    rate = f"{memory.events_per_hour:,.0f} events/h of {format_size(memory.bytes_per_event)}"
    return f"{goes}: at the present rate about {format_size(memory.settles_at)} ({rate})"


def _unbounded(memory: Memory) -> str:
    if memory.trend == "not enough history" or memory.events_per_hour is None:
        return "not enough history for a forecast (ten minutes are needed)"
    span = f"the last {format_duration(memory.measured_over or 0)}"
    if memory.trend == "no growth":
        return f"no growth in {span}"
    if not memory.bytes_per_event:
        return f"growing in {span}; the server does not say what an event takes"
    rate = (
        f"{memory.events_per_hour:,.0f} events/h of {format_size(memory.bytes_per_event)} in {span}"
    )
    if memory.seconds_left is None:
        return rate
    return f"at the present rate full in {format_duration(memory.seconds_left)} ({rate})"


def format_size(count: float) -> str:
    """Return bytes as people read them: "1.4 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def format_duration(seconds: float) -> str:
    """Return a time span as people read it, in its largest unit: "36 hours"."""
    for unit, length in (("day", _DAY), ("hour", _HOUR), ("minute", 60.0)):
        if seconds >= 2 * length or (unit == "minute" and seconds >= length):
            count = round(seconds / length)
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:.0f} seconds"
