"""How long the memory lasts: the rate of the log, the limit of Redis, and plain words."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memorybus.health import memory as health_memory
from memorybus.log.continuity import PartitionView
from memorybus.log.entry import Place
from memorybus.log.forecast import (
    AGES_MS,
    AOF_FRAME,
    Growth,
    LimitFrom,
    Memory,
    MemoryLoad,
    PartitionGrowth,
    describe_disk,
    describe_memory,
    fill_level,
    first_to_fill,
    forecast_disk,
    forecast_memory,
    format_duration,
    format_size,
    growth_of,
)
from memorybus.log.inspection import PartitionState

DAY = 86_400.0
NOW = 1_700_000_000_000
HOUR_AGO, TEN_MINUTES_AGO = (NOW - age for age in AGES_MS)


def load(
    *growths: tuple[float, int | None],
    used: int = 1_000,
    limit: int | None = 11_000,
    limit_from: LimitFrom = "maxmemory",
    per_event: float = 100.0,
) -> MemoryLoad:
    """Return a load."""
    return MemoryLoad(
        used=used,
        limit=limit,
        limit_from=limit_from,
        bytes_per_event=per_event,
        growths=tuple(Growth(*growth) for growth in growths),
    )


@pytest.mark.parametrize(
    ("growths", "trend", "rate", "left"),
    [
        (((3600, 100), (600, 10)), "growing", 100.0, 3600.0),
        (((3600, 100), (600, 100)), "growing", 600.0, 600.0),
        (((3600, None), (600, 100)), "growing", 600.0, 600.0),
        (((3600, 0), (600, 0)), "no growth", 0.0, None),
        (((3600, None), (600, 0)), "no growth", 0.0, None),
        (((3600, None), (600, None)), "not enough history", None, None),
    ],
)
def test_the_faster_rate_counts(
    growths: tuple[tuple[float, int | None], ...],
    trend: str,
    rate: float | None,
    left: float | None,
) -> None:
    """G10: the forecast takes the hour or the ten minutes, whichever fills the memory sooner."""
    found = forecast_memory(load(*growths))
    assert (found.trend, found.events_per_hour, found.seconds_left) == (trend, rate, left)


@example(used=0, limit=1 << 40, per_event=5e-324, events=1)
@given(
    used=st.integers(0, 1 << 40),
    limit=st.none() | st.integers(1, 1 << 40),
    per_event=st.floats(0, 1e6),
    events=st.none() | st.integers(0, 10**9),
)
def test_a_forecast_is_never_absurd(
    used: int, limit: int | None, per_event: float, events: int | None
) -> None:
    """G10: no load divides by zero, gives a negative time, or cannot be told in words."""
    found = forecast_memory(load((600, events), used=used, limit=limit, per_event=per_event))
    assert found.seconds_left is None or found.seconds_left >= 0
    assert describe_memory(found)
    assert fill_level(found.seconds_left, found.used, found.limit) in ("ok", "warning", "critical")


@pytest.mark.parametrize(
    ("left", "used", "limit", "expected"),
    [
        (None, 1, 100, "ok"),
        (3 * DAY, 1, 100, "ok"),
        (3 * DAY - 1, 1, 100, "warning"),
        (DAY, 1, 100, "warning"),
        (DAY - 1, 1, 100, "critical"),
        (None, 95, 100, "critical"),
        (None, 94, 100, "ok"),
        (None, 95, None, "ok"),
    ],
)
def test_the_levels(left: float | None, used: int, limit: int | None, expected: str) -> None:
    """G10: a warning within three days, critical within one, or when nearly full at any rate."""
    assert fill_level(left, used, limit) == expected


def test_of_several_servers_the_one_full_first_counts() -> None:
    """G10: a cluster's memory lasts as long as that of the shard that is full first."""
    still, slow, fast = (forecast_memory(load((600, events))) for events in (0, 1, 9))
    full = forecast_memory(load((600, 0), used=10_900))
    assert first_to_fill([still, slow, fast]) == fast
    assert first_to_fill([still, slow]) == slow
    assert first_to_fill([still, full, fast]) == full


def grown(n: int, first_n: int, first_at: int, *numbers: int | None) -> PartitionGrowth:
    """Return how a partition grew."""
    return PartitionGrowth(n, first_n, first_at, numbers)


@pytest.mark.parametrize(
    ("parts", "hour", "ten_minutes"),
    [
        ((), None, None),
        ((grown(10, 1, HOUR_AGO - 5, 4, 9),), 7, 2),
        ((grown(10, 1, HOUR_AGO - 5, 4, None),), 7, 0),
        ((grown(10, 1, HOUR_AGO + 5, 1, 9),), None, 2),
        ((grown(10, 1, TEN_MINUTES_AGO + 5, 1, 1),), None, None),
        ((grown(10, 1, HOUR_AGO - 5, 4, 9), grown(3, 1, NOW - 5, 1, 1)), 10, 5),
        ((grown(10, 1, HOUR_AGO - 5, 4, 9), grown(3, 2, NOW - 5, 2, 2)), None, None),
        ((grown(10, 0, NOW, None, None),), None, None),
    ],
    ids=[
        "an empty log",
        "both times",
        "nothing lately",
        "younger than an hour",
        "younger than ten minutes",
        "a partition that began lately counts whole",
        "a partition that lost its beginning",
        "a partition that lost everything",
    ],
)
def test_growth_is_measured_where_the_log_reaches_back(
    parts: tuple[PartitionGrowth, ...], hour: int | None, ten_minutes: int | None
) -> None:
    """G10: growth is a difference of numbers, and unknown where those of then are gone."""
    assert growth_of(parts, NOW) == (Growth(3600.0, hour), Growth(600.0, ten_minutes))


def test_the_words_of_a_forecast() -> None:
    """G10: the room, whose limit it is, the rate and the time are told, or that nobody knows."""
    growing = forecast_memory(load((3600, 100), used=1 << 20, limit=3 << 20))
    assert describe_memory(growing) == (
        "1.0 MiB of 3.0 MiB used (maxmemory); at the present rate full in 9 days "
        "(100 events/h of 100 B in the last 60 minutes)"
    )
    assert describe_memory(forecast_memory(load((600, 0)))).endswith(
        "no growth in the last 10 minutes"
    )
    assert "does not say what an event takes" in describe_memory(
        forecast_memory(load((600, 1), per_event=0.0))
    )
    young = describe_memory(forecast_memory(load((600, None), limit=None, limit_from="unknown")))
    assert "the limit is unknown" in young
    assert "not enough history" in young
    assert "whatever else runs there" in describe_memory(
        forecast_memory(load((600, 1), limit_from="machine"))
    )


@pytest.mark.parametrize(
    ("info", "left", "expected"),
    [
        ({"maxmemory": 50, "total_system_memory": 100}, 7, (50, "maxmemory")),
        ({"maxmemory": 0, "total_system_memory": 100}, 7, (12, "available")),
        ({"maxmemory": 0, "total_system_memory": 100}, None, (100, "machine")),
        ({}, None, (None, "unknown")),
    ],
)
def test_the_limit_says_whose_it_is(
    info: dict[str, int], left: int | None, expected: tuple[int | None, str]
) -> None:
    """G10: the limit is maxmemory, else what our machine has left, else all of Redis's machine."""
    assert health_memory.limit_of(info, 5, left) == expected


def test_what_a_machine_has_left() -> None:
    """G10: Linux says what programs can still get; another system says nothing."""
    assert health_memory.available_bytes("MemTotal: 9 kB\nMemAvailable:    4 kB\n") == 4096
    assert health_memory.available_bytes("nothing of the kind") is None


def test_an_event_takes_its_entry_and_its_remembered_id() -> None:
    """G10: the bytes of an event are those of the streams and of the ids, each by its count."""
    states = [
        PartitionState(PartitionView(length=10), 1_000, 10, 300, NOW, (None, None)),
        PartitionState(PartitionView(length=30), 3_000, 0, 0, NOW, (None, None)),
        PartitionState(PartitionView(), 0, 0, 0, NOW, (None, None)),
    ]
    assert health_memory.bytes_per_event(states) == 130.0
    assert health_memory.bytes_per_event(states[2:]) == 0.0


def test_the_load_is_read_from_looks() -> None:
    """G10: INFO and the looks at the partitions make the load; an empty log has no history."""
    info = {"used_memory": 10, "maxmemory": 100}
    old = PartitionView(
        length=2, n=2, first=Place(f"{HOUR_AGO - 1}-0", 1), last=Place(f"{NOW}-0", 2)
    )
    found = health_memory.memory_load(info, [PartitionState(old, 200, 2, 20, NOW, (2, 2))], None)
    assert found.growths == (Growth(3600.0, 1), Growth(600.0, 1))
    assert (found.used, found.limit, found.bytes_per_event) == (10, 100, 110.0)
    empty = health_memory.memory_load(
        info, [PartitionState(PartitionView(), 0, 0, 0, NOW, (None, None))], None
    )
    assert forecast_memory(empty).trend == "not enough history"


def test_the_disk_needs_room_for_a_rewrite() -> None:
    """G10: the embedded server's disk lasts until its file could not be written once more."""
    memory = Memory(0, 1, "maxmemory", 136.0, 3600.0, 600.0, "growing", 1.0)
    found = forecast_disk(10_000, 8_000, memory)
    assert found.seconds_left == 2_000 / (136 + AOF_FRAME)
    assert "no rewrite fits in 10 seconds" in describe_disk(found)
    still = forecast_disk(10_000, 8_000, Memory(0, 1, "maxmemory", 1.0, 0.0, 1, "no growth", None))
    assert still.seconds_left is None
    assert describe_disk(still) == "9.8 KiB free, the append-only file has 7.8 KiB"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 seconds"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (3600, "60 minutes"),
        (7200, "2 hours"),
        (47 * 3600, "47 hours"),
        (2 * DAY, "2 days"),
        (4_000 * DAY, "4,000 days"),
    ],
)
def test_durations_are_told_in_a_fitting_unit(seconds: float, said: str) -> None:
    """A span of time is told so that nobody has to divide."""
    assert format_duration(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (5 << 30, "5.0 GiB"),
        (1 << 50, "1024.0 TiB"),
    ],
)
def test_sizes_are_told_in_a_fitting_unit(count: float, said: str) -> None:
    """Bytes are told so that nobody has to divide."""
    assert format_size(count) == said


@pytest.mark.parametrize(
    ("kept_for", "limit", "left", "settles"),
    [
        (None, 11_000, 3600.0, None),
        (360.0, 11_000, None, 1_500),
        (36_000.0, 11_000, 3600.0, 100_500),
        (360.0, None, None, 1_500),
    ],
)
def test_what_the_archive_takes_does_not_fill_the_memory(
    kept_for: float | None, limit: int | None, left: float | None, settles: int | None
) -> None:
    """G10: with an archive memory settles, unless the hot window alone is more than it holds."""
    grown = msgspec.structs.replace(load((3600, 100), limit=limit), kept_for=kept_for, fixed=500)
    found = forecast_memory(grown)
    assert (found.seconds_left, found.settles_at) == (left, settles)
    if settles and left is None:
        assert "goes to the archive" in describe_memory(found)
        assert forecast_disk(10_000, 1, found).seconds_left is None
    elif left:
        assert "full in" in describe_memory(found)


def test_without_history_the_archive_is_told_all_the_same() -> None:
    """G10: a young log says for how long events stay, and claims no number."""
    young = msgspec.structs.replace(load((600, None)), kept_for=3600.0)
    assert describe_memory(forecast_memory(young)).endswith(
        "what is older than 60 minutes goes to the archive"
    )
