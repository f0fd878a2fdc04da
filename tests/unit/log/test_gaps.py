"""What is missing in a partition is told by its numbers, and nothing else is."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.log.continuity import (
    Gap,
    Numbers,
    PartitionView,
    count_foreign,
    count_mismatch,
    find_gaps,
    find_lost_tail,
    unsealed_start,
)
from memorybus.log.entry import Place

P = 3
Entries = Sequence[tuple[int, int | None]]
"""A stream: ids and dense numbers; an entry of others has none."""


def place(entry: int, n: int) -> Place:
    """Return a place."""
    return Place(f"{entry}-0", n)


def view(entries: Entries, n: int, *, sealed: int = 0) -> PartitionView:
    """Return what a look finds of a stream."""
    ours = [place(entry, number) for entry, number in entries if number is not None]
    return PartitionView(
        length=len(entries),
        n=n,
        sealed=sealed,
        first=ours[0] if ours else None,
        last=ours[-1] if ours else None,
        sealed_at=next((f"{entry}-0" for entry, number in entries if number == sealed), ""),
    )


def page(entries: Entries, after: Place, count: int) -> Numbers:
    """Return what the script finds of the entries behind a place."""
    behind = int(after.entry.split("-")[0])
    read = [one for one in entries if one[0] > behind][:count]
    n, breaks, foreign = after.n, [], 0
    for _, number in read:
        if number is None:
            foreign += 1
            continue
        if number != n + 1:
            breaks.append((n, number))
        n = number
    upto = Place(f"{read[-1][0]}-0" if read else after.entry, n)
    return Numbers(upto, len(read) < count, len(read), foreign, tuple(breaks))


def numbers(
    entries: Entries, seen: PartitionView, pages: int = 99, count: int = 3
) -> Numbers | None:
    """Read a stream page by page, if its counts do not agree."""
    if not count_mismatch(seen):
        return None
    found = page(entries, unsealed_start(seen), count)
    for _ in range(pages):
        if not found.done:
            found = found.join(page(entries, found.upto, count))
    return found


def numbered(*numbers: int | None) -> list[tuple[int, int | None]]:
    """Return a stream of these numbers."""
    return [(10 + index, number) for index, number in enumerate(numbers)]


def gap(first: int, last: int, missing: int | None = None) -> Gap:
    """Return a gap of the partition."""
    return Gap(P, first, last, last - first + 1 if missing is None else missing)


@pytest.mark.parametrize(
    ("entries", "n", "sealed", "expected"),
    [
        ([], 0, 0, []),
        (numbered(1, 2, 3), 3, 0, []),
        (numbered(3), 3, 0, [gap(1, 2)]),
        (numbered(1, 2), 4, 0, [gap(3, 4)]),
        ([], 5, 0, [gap(1, 5)]),
        ([], 5, 5, []),
        ([], 5, 3, [gap(4, 5)]),
        (numbered(4, 5), 5, 3, []),
        (numbered(2, 3), 3, 1, []),
        (numbered(2, 3), 3, 2, []),
        (numbered(6), 6, 3, [gap(4, 5)]),
        (numbered(1, 2, 5, 6, 8), 9, 0, [gap(3, 7, 3), gap(9, 9)]),
        (numbered(1, 2, 5, 6, 8), 9, 3, [gap(4, 7, 2), gap(9, 9)]),
        (numbered(1, 2, 5, 6, 8), 9, 6, [gap(7, 7), gap(9, 9)]),
        (numbered(None, 1, 2, None), 2, 0, []),
        (numbered(None, 2, None), 3, 0, [gap(1, 1), gap(3, 3)]),
        (numbered(None, None, 1, 3), 3, 0, [gap(2, 2)]),
        (numbered(None, None), 7, 0, []),
    ],
)
def test_gaps_are_ranges_of_numbers(entries, n, sealed, expected):
    """G7: what is missing above the sealed part is told, wherever it is, and nothing else."""
    seen = view(entries, n, sealed=sealed)
    assert find_gaps(P, seen, numbers(entries, seen)) == expected


@given(
    total=st.integers(0, 60),
    gone=st.sets(st.integers(1, 60)),
    sealed=st.integers(0, 60),
    foreign=st.lists(st.integers(0, 60), max_size=4),
    pages=st.integers(0, 30),
)
def test_what_is_missing_is_counted(total, gone, sealed, foreign, pages):
    """G7: whatever is deleted, nothing sealed is claimed to be lost, and what is lost is counted.

    Entries of others hide as many deletions if their numbers agree: these are told when the
    partition is sealed.
    """
    sealed = min(sealed, total)
    entries: list[tuple[int, int | None]] = sorted(
        [(100 * n, n) for n in range(1, total + 1) if n not in gone]
        + [(100 * n + 1 + index, None) for index, n in enumerate(foreign)],
        key=lambda one: one[0],
    )
    seen = view(entries, total, sealed=sealed)
    lost = {n for n in gone if sealed < n <= total}
    found = find_gaps(P, seen, numbers(entries, seen, pages))
    told = {n for one in found for n in range(one.first, one.last + 1)}
    missing = sum(one.missing for one in found)
    assert missing <= len(lost)
    assert not told or min(told) > sealed
    if not foreign and pages > 25:
        assert missing == len(lost)
        assert told >= lost


@given(total=st.integers(3, 50), gone=st.sets(st.integers(2, 50)), pages=st.integers(0, 4))
def test_before_it_is_read_a_gap_is_counted(total, gone, pages):
    """G7: what was not read in one look is told at once, as a count within a range."""
    lost = {n for n in gone if n < total}
    entries = [(n, n) for n in range(1, total + 1) if n not in lost]
    seen = view(entries, total)
    found = find_gaps(P, seen, numbers(entries, seen, pages))
    assert sum(one.missing for one in found) == len(lost)
    assert all(one.first <= one.last for one in found)
    assert lost <= {n for one in found for n in range(one.first, one.last + 1)}


def test_a_whole_log_is_never_read():
    """G10: as long as the counts agree, no entry is read, however long the log."""
    assert count_mismatch(view([(n, n) for n in range(1, 1_000)], 999)) == 0
    assert count_mismatch(view([], 0)) == 0
    assert count_mismatch(view(numbered(5, 6), 6, sealed=4)) == 0


def test_entries_of_others_are_counted():
    """G6: how many entries others wrote is known, though not all of them were read."""
    entries = numbered(None, 1, 2, None, 3, 4, None)
    seen = view(entries, 4)
    assert count_foreign(seen, numbers(entries, seen)) == 3
    assert count_foreign(seen, numbers(entries, seen, 0)) == 3
    assert count_foreign(view(numbered(1, 2), 2), None) == 0


def test_numbers_that_begin_again_are_no_gap():
    """G2: numbers that were given twice are recognised, and nothing is missing between them."""
    entries = numbered(1, 2, 3, 1, 2)
    seen = view(entries, 2)
    read = numbers(entries, seen)
    assert read is not None
    assert read.restarted == 3
    assert find_gaps(P, seen, read) == []


@pytest.mark.parametrize(
    ("n", "before", "after", "sealed", "expected"),
    [
        (9, place(50, 9), None, 0, None),
        (12, place(50, 9), place(51, 10), 0, None),
        (7, place(40, 7), None, 0, gap(8, 9)),
        (9, place(40, 7), place(60, 8), 0, gap(8, 9)),
        (12, place(40, 7), place(60, 8), 0, gap(8, 9)),
        (2, None, place(60, 1), 0, gap(1, 9)),
        (0, None, None, 0, gap(1, 9)),
        (6, None, None, 6, gap(7, 9)),
        (12, None, place(60, 11), 0, None),
        (12, place(40, 7), place(60, 10), 0, None),
        (9, None, None, 0, None),
        (0, place(50, 9), None, 0, None),
    ],
    ids=[
        "it is there",
        "it is there, and the log went on",
        "the log went back",
        "the log went back and numbers anew",
        "the log went back and past it",
        "begun anew",
        "gone with its counter",
        "gone down to what is sealed",
        "trimmed: a gap",
        "deleted: a gap",
        "the stream deleted: a gap",
        "the counter deleted",
    ],
)
def test_a_log_that_went_back_is_told(n, before, after, sealed, expected):
    """G1: numbers given again tell that the log lost its tail; a deletion leaves them a gap."""
    seen = PartitionView(n=n, sealed=sealed, before=before, after=after)
    assert find_lost_tail(P, seen, place(50, 9)) == expected


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (gap(2, 4), "partition p03: events 2 to 4 are gone"),
        (gap(2, 9, 3), "partition p03: 3 of the events 2 to 9 are gone"),
    ],
)
def test_a_gap_in_words(found, said):
    """G10: a gap names its partition and its numbers."""
    assert str(found) == said
