"""What may be sealed and trimmed, from heads, ages and settings."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.archive.format.parquet import RawEntry
from memorybus.config.settings import Settings
from memorybus.log.continuity import Gap, PartitionView, find_lost_archive
from memorybus.log.entry import Place, number_of
from memorybus.log.inspection import PartitionState
from memorybus_workers.archiving import due
from memorybus_workers.archiving.archiver import MAX_POLL_SECONDS, look_interval
from memorybus_workers.archiving.due import NumbersGivenTwice
from memorybus_workers.archiving.round import summarize_errors

NOW = 1_700_000_000_000
SETTINGS = Settings(segment_events=100, segment_age=600.0, seal_after=60.0, hot_window=3600.0)


def place(n: int, age: float) -> Place:
    """Return an entry of ours that came so many seconds ago."""
    return Place(f"{NOW - round(age * 1000)}-0", n)


def state(
    *, n: int, sealed: int, first: Place | None, unsealed: Place | None, young: int | None = None
) -> PartitionState:
    """Return a partition at `NOW`."""
    length = n - first.n + 1 if first else 0
    view = PartitionView(
        length=length,
        n=n,
        sealed=sealed,
        first=first,
        last=place(n, 0) if first else None,
        unsealed=unsealed,
    )
    return PartitionState(view, 0, NOW, (young,))


@pytest.mark.parametrize(
    ("seen", "force", "expected"),
    [
        (state(n=0, sealed=0, first=None, unsealed=None), True, (False, False)),
        (state(n=9, sealed=0, first=place(1, 59), unsealed=place(1, 59)), True, (False, False)),
        (state(n=9, sealed=0, first=place(1, 61), unsealed=place(1, 61)), True, (True, False)),
        (state(n=9, sealed=0, first=place(1, 599), unsealed=place(1, 599)), False, (False, False)),
        (state(n=9, sealed=0, first=place(1, 600), unsealed=place(1, 600)), False, (True, False)),
        (state(n=100, sealed=0, first=place(1, 61), unsealed=place(1, 61)), False, (True, False)),
        (
            state(n=150, sealed=0, first=place(1, 61), unsealed=place(1, 61), young=100),
            False,
            (False, False),
        ),
        (
            state(n=150, sealed=0, first=place(1, 61), unsealed=place(1, 61), young=101),
            False,
            (True, False),
        ),
        (state(n=9, sealed=9, first=place(1, 3659), unsealed=None), False, (False, False)),
        (state(n=9, sealed=9, first=place(1, 3660), unsealed=None), False, (False, True)),
        (state(n=9, sealed=9, first=place(9, 9999), unsealed=None), False, (False, False)),
        (state(n=9, sealed=3, first=place(4, 9999), unsealed=place(4, 10)), False, (False, False)),
        (state(n=9, sealed=3, first=place(9, 9999), unsealed=None), False, (True, False)),
    ],
    ids=[
        "nothing there",
        "too young, whoever asks",
        "asked for",
        "few and young",
        "the first is old",
        "a segment is full",
        "full only with the young ones",
        "just full without the young ones",
        "still hot",
        "cold",
        "the last entry stays",
        "only what is not sealed",
        "what is not sealed cannot be seen from its beginning",
    ],
)
def test_what_is_due(seen, *, force, expected):
    """G7: a segment is sealed when it is full or old, never with what Redis may still lose."""
    found = due.find_due(seen, SETTINGS, force=force)
    assert (found.seal, found.trim) == expected
    assert bool(found) == any(expected)


def fields(n: int | None) -> list[bytes]:
    """Return an entry's fields."""
    return [b"hello", b"world"] if n is None else [b"n", b"%d" % n, b"e", b"body"]


def entries(numbers: Sequence[int | None]) -> list[tuple[str, Sequence[bytes]]]:
    """Return a page of a stream."""
    return [(f"{100 + index}-0", fields(n)) for index, n in enumerate(numbers)]


@given(numbers=st.lists(st.none() | st.integers(1, 60), max_size=30))
def test_numbers_only_grow(numbers):
    """G3, G7: whatever stands in a stream, what is sealed is in order, or nothing is."""
    ours = [n for n in numbers if n is not None]
    if ours != sorted(set(ours)):
        with pytest.raises(NumbersGivenTwice):
            due.number_entries(entries(numbers), 0)
        return
    found = due.number_entries(entries(numbers), 0)
    assert [one.n for one in found] == ours
    gone = {n for gap in due.find_gaps(1, 0, found) for n in range(gap.first, gap.last + 1)}
    assert gone == set(range(1, max(ours, default=0) + 1)) - set(ours)


def test_a_number_that_was_sealed_is_given_twice():
    """G2, G7: the number that the archive ends with is not sealed again."""
    with pytest.raises(NumbersGivenTwice, match="has the number 7, but 7 came before it"):
        due.number_entries(entries([None, 7]), 7)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([b"n", b"7", b"e", b""], 7),
        ([b"n", b"7", b"r", b""], 7),
        ([b"n", b"7", b"x", b""], None),
        ([b"n", b"-7", b"e", b""], None),
        ([b"n", b"9" * 16, b"e", b""], None),
        ([b"e", b"", b"n", b"7"], None),
        ([], None),
    ],
)
def test_what_carries_a_number(raw, expected):
    """G6: an entry of ours is told by its form."""
    assert number_of(raw) == expected


@given(
    sizes=st.lists(st.integers(1, 2 << 20), min_size=1, max_size=400),
    events=st.integers(1, 300),
)
def test_a_segment_that_is_gathered_stays_within_its_bounds(sizes, events):
    """G10: pages never take more events than a segment has, nor much more than its bytes."""
    settings = Settings(segment_events=events)
    taken: list[RawEntry] = []
    size, left = 0, list(sizes)
    while left and (count := due.next_page_size(taken, size, settings)):
        assert 1 <= count <= due.PAGE
        page, left = left[:count], left[count:]
        taken += [RawEntry("1-0", 1, ()) for _ in page]
        size += sum(page)
    assert len(taken) <= events
    assert not left or len(taken) == events or size >= due.FULL_SEGMENT_BYTES


@pytest.mark.parametrize(
    ("sealed", "end", "first", "expected"),
    [
        (0, None, 1, None),
        (50, 50, 50, None),
        (40, 50, 51, None),
        (50, 40, 41, None),
        (50, 40, 30, None),
        (50, 40, 45, (41, 44)),
        (50, 40, 60, (41, 50)),
        (50, 40, None, (41, 50)),
        (50, None, 1, (1, 50)),
        (50, None, 51, (1, 50)),
        (50, None, None, (1, 50)),
    ],
)
def test_what_an_archive_lacks(sealed, end, first, expected):
    """G7: what was sealed and is nowhere is named; an archive that lost all is not begun anew."""
    found = find_lost_archive(3, sealed, end and Place("1-0", end), first and Place("1-0", first))
    assert (found and (found.first, found.last)) == expected
    assert found is None or found == Gap(3, *expected, found.last - found.first + 1)


@given(after=st.floats(0, 1e5), age=st.floats(0, 1e5))
def test_looks_are_neither_rare_nor_mad(after, age):
    """G10: an archiver looks each few seconds, ten times a second at most."""
    assert 0.1 <= look_interval(Settings(seal_after=after, segment_age=age)) <= MAX_POLL_SECONDS


def test_the_errors_of_many_partitions_are_one_sentence_and_a_number():
    """G7: an archive that is not mounted is no wall of one sentence for each partition."""
    lacking = {n: f"the archive lacks events of partition p{n:02d}" for n in range(16)}
    assert summarize_errors(lacking) == (
        "the archive lacks events of partition p00; and 15 more partitions: memorybus archive run"
    )
    assert summarize_errors(dict(list(lacking.items())[:2])).endswith(
        "; and 1 more partition: memorybus archive run"
    )


def test_an_error_that_all_partitions_share_comes_once():
    """One error is shown as it is, whether of one partition or of all."""
    assert summarize_errors({}) == ""
    assert summarize_errors({3: "no room", 5: "no room"}) == "no room"
