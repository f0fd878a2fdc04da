"""Segments are written anew: small ones become few, and rows go when they are old or forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.query.query import EventRow, Query
from memorybus_workers.archiving.compactor import (
    CLASS_SIZE_FACTOR,
    SegmentSize,
    choose_run,
    enough_events,
    is_small,
    size_class_of,
)
from memorybus_workers.archiving.due import FULL_SEGMENT_BYTES
from memorybus_workers.archiving.retention import (
    DAY_MS,
    Policy,
    SegmentAges,
    build_omission_filter,
    mark_of_tombstones,
)

SEGMENT = 1_000


def settle(sizes: list[SegmentSize], rewrites: list[int], segment: int = SEGMENT) -> None:
    """Merge until nothing is chosen; count for each segment how often its events were written."""
    while (chosen := choose_run(sizes, segment)) is not None:
        assert len(chosen) > 1
        part = sizes[chosen.start : chosen.stop]
        assert all(is_small(size, segment) for size in part)
        sizes[chosen.start : chosen.stop] = [
            SegmentSize(sum(one.events for one in part), sum(one.bytes for one in part))
        ]
        rewrites[chosen.start : chosen.stop] = [1 + max(rewrites[chosen.start : chosen.stop])]


@given(events=st.lists(st.integers(1, 2 * SEGMENT), max_size=300))
def test_an_event_is_rewritten_a_bounded_number_of_times(events):
    """G10: sealed one after the other, no event is written anew more often than there are sizes."""
    sizes: list[SegmentSize] = []
    rewrites: list[int] = []
    for count in events:
        sizes.append(SegmentSize(count, count))
        rewrites.append(0)
        settle(sizes, rewrites)
    assert sum(size.events for size in sizes) == sum(events)
    assert max(rewrites, default=0) <= size_class_of(enough_events(SEGMENT)) + 1


@given(events=st.lists(st.integers(1, SEGMENT // 10), min_size=1, max_size=400))
def test_small_segments_become_few(events):
    """G10: a quiet partition's many segments come to few for all that they hold."""
    sizes = [SegmentSize(count, count) for count in events]
    settle(sizes, [0] * len(sizes))
    large = sum(not is_small(size, SEGMENT) for size in sizes)
    assert large <= sum(events) / enough_events(SEGMENT)
    assert len(sizes) - large <= CLASS_SIZE_FACTOR * (size_class_of(enough_events(SEGMENT)) + 1)


@given(
    sizes=st.lists(
        st.builds(SegmentSize, st.integers(1, SEGMENT), st.integers(1, 2 * FULL_SEGMENT_BYTES)),
        max_size=60,
    )
)
def test_a_merged_segment_is_bounded(sizes):
    """G10: no merge makes a segment of more than a full one's events and bytes."""
    for _ in range(200):
        chosen = choose_run(sizes, SEGMENT)
        if chosen is None:
            return
        part = sizes[chosen.start : chosen.stop]
        whole = SegmentSize(sum(one.events for one in part), sum(one.bytes for one in part))
        assert whole.events <= SEGMENT
        assert whole.bytes <= FULL_SEGMENT_BYTES
        sizes[chosen.start : chosen.stop] = [whole]
    raise AssertionError("it never ends")


def test_full_segments_are_left_alone():
    """G10: what was sealed full is never rewritten."""
    assert choose_run([SegmentSize(SEGMENT, 1)] * 50, SEGMENT) is None
    assert choose_run([SegmentSize(1, FULL_SEGMENT_BYTES)] * 50, SEGMENT) is None
    assert choose_run([], SEGMENT) is None


NOW = 1_700_000_000_000
DAY = 86_400.0
ANN = EventRow("1", "s", "TurnCompleted", "helper", "ann", "home", "cli", "")
BOB = EventRow("2", "t", "TurnCompleted", "helper", "bob", "work", "slack", "")


@pytest.mark.parametrize(
    ("ages", "row", "expected"),
    [
        ({}, ANN, None),
        ({"default": 9.0}, ANN, 9.0),
        ({"default": 0.0}, ANN, None),
        ({"default": 9.0, "user:ann": 3.0}, ANN, 3.0),
        ({"default": 9.0, "user:ann": 3.0}, BOB, 9.0),
        ({"default": 9.0, "user:ann": 0.0}, ANN, 9.0),
        ({"agent:helper": 5.0, "platform:slack": 2.0, "workspace:work": 4.0}, BOB, 2.0),
        ({"workspace:work": 4.0}, ANN, None),
    ],
)
def test_the_shortest_age_that_applies(ages, row, expected):
    """G10: a row is kept for the shortest time that its scope has; for ever without one."""
    assert Policy(ages).retention_of(row) == expected


def test_why_a_row_is_omitted():
    """G10: what is older than its age goes, what is forgotten goes at once, the rest stays."""
    policy = Policy({"default": 10.0}, forgotten=[Query(users=("bob",))])
    assert policy.omission(ANN, NOW - 10_000, NOW) == "retention"
    assert policy.omission(ANN, NOW - 9_999, NOW) is None
    assert policy.omission(BOB, NOW, NOW) == "forgotten"


def rewritten(first: int, last: int, age: float, *, days: int) -> list[int]:
    """Return at which days a segment is rewritten, if it is looked at each hour."""
    policy = Policy({"default": age})
    decided_at, found = last, []
    for hour in range(24 * days):
        now = last + hour * 3_600_000
        if policy.concerns(SegmentAges(first, last, decided_at, kept=1), now):
            decided_at = now
            found.append(hour // 24)
    return found


def test_a_segment_is_rewritten_as_its_rows_grow_old():
    """G10: a segment of ten days is rewritten once a day from its first row's end to its last's."""
    first, last = NOW, NOW + 10 * DAY_MS
    found = rewritten(first, last, 30 * DAY, days=60)
    assert found[0] in (20, 21)
    assert found[-1] == 30
    assert len(found) <= 12


@given(
    span=st.integers(0, 40 * DAY_MS),
    age=st.floats(1.0, 100 * DAY),
    passed=st.integers(0, 200 * DAY_MS),
)
def test_no_row_outlives_its_age_for_long(span, age, passed):
    """G10: however a segment came about, a row is gone a day after its age at the latest."""
    first, last = NOW, NOW + span
    now = last + passed
    policy = Policy({"default": age})
    segment = SegmentAges(first, last, last, kept=1)
    age_ms = round(age * 1000)
    oldest = max(first, last - age_ms + 1)  # what was older went when the segment was written
    if oldest + age_ms + min(DAY_MS, age_ms // 10) <= now:
        assert policy.concerns(segment, now)
    if first + age_ms > now:
        assert not policy.concerns(segment, now)
    again = SegmentAges(first, last, now, kept=1)
    assert not policy.concerns(again, now)


def test_a_new_setting_counts_for_old_segments_too():
    """G10: a shorter retention, or one for another scope, is applied to what was written before."""
    segment = SegmentAges(NOW, NOW + 1_000, NOW + 60 * DAY_MS, kept=1)
    now = NOW + 61 * DAY_MS
    assert not Policy({"default": 30 * DAY}, since=NOW).concerns(segment, now)
    assert Policy({"user:ann": 30 * DAY}, since=NOW + 60 * DAY_MS + 1).concerns(segment, now)


def test_a_tombstone_concerns_what_was_written_before_it():
    """G10: a segment is looked through once for each tombstone, whatever clocks say of it."""
    queries = [Query(users=("bob",)), Query(users=("ann",))]
    one, two = mark_of_tombstones(["x"]), mark_of_tombstones(["y", "x"])
    assert two == mark_of_tombstones(["x", "y"]) != one
    policy = Policy(forgotten=queries, tombstones=two)
    for known, concerned in (("", True), (one, True), (two, False)):
        assert policy.concerns(SegmentAges(NOW, NOW, NOW, 1, known), NOW) is concerned
        assert not policy.concerns(SegmentAges(NOW, NOW, NOW, 0, known), NOW)
    assert not Policy(tombstones=mark_of_tombstones([])).concerns(
        SegmentAges(NOW, NOW, NOW, 1, one), NOW
    )


@pytest.mark.parametrize(
    ("policy", "keeps_all"),
    [
        (Policy(), True),
        (Policy({"default": 0.0, "user:ann": 0.0}), True),
        (Policy({"default": 0.0, "user:ann": 1.0}), False),
        (Policy(forgotten=[Query(users=("bob",))]), False),
    ],
)
def test_who_keeps_all_asks_no_row(policy, keeps_all):
    """G10: rows are asked about while a scope has an age or anything is to be forgotten."""
    assert policy.keeps_all is keeps_all
    assert (build_omission_filter(policy, NOW, NOW, NOW) is None) is keeps_all
