"""Which small segments are merged, and how often an event is rewritten."""

from hypothesis import given
from hypothesis import strategies as st
from memorybus_workers.archiving.compactor import (
    CLASS_SIZE_FACTOR,
    SegmentSize,
    choose_run,
    enough_events,
    is_small,
    size_class_of,
)
from memorybus_workers.archiving.due import FULL_SEGMENT_BYTES

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
