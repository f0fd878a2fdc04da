"""What is missing in a partition is told by its numbers, and nothing else is."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.log.continuity import (
    NAMED,
    Audit,
    Gap,
    Page,
    Place,
    View,
    advanced,
    audit_of,
    counter_lost,
    gaps_of,
    needs_audit,
    tail_lost,
)

P = 3
Entries = Sequence[tuple[int, int | None]]
"""A stream: ids and dense numbers; a stranger has none."""


def place(entry: int, n: int) -> Place:
    """Return a place."""
    return Place(f"{entry}-0", n)


def view(entries: Entries, n: int, *, sealed: int = 0, deleted: str = "") -> View:
    """Return what a look finds of a stream."""
    ours = [place(entry, number) for entry, number in entries if number is not None]
    return View(
        length=len(entries),
        n=n,
        sealed=sealed,
        deleted=deleted,
        first=ours[0] if ours else None,
        last=ours[-1] if ours else None,
    )


def page(entries: Entries, after: Place, count: int) -> Page:
    """Return what the audit's script finds."""
    behind = int(after.entry.split("-")[0])
    read = [one for one in entries if one[0] > behind][:count]
    n, breaks, strays = after.n, [], 0
    for _, number in read:
        if number is None:
            strays += 1
            continue
        if number != n + 1:
            breaks.append((n, number))
        n = number
    upto = Place(f"{read[-1][0]}-0" if read else after.entry, n)
    return Page(upto, len(read), strays, tuple(breaks))


def audited(
    entries: Entries, seen: View, count: int = 3, audit: Audit | None = None
) -> Audit | None:
    """Read the stream to its end, if the counts demand it."""
    while needs_audit(seen, audit):
        audit = audit_of(seen, audit)
        audit = advanced(audit, page(entries, audit.upto, count), count)
    return audit


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
        (numbered(1, 2, 5, 6, 8), 9, 0, [gap(3, 4), gap(7, 7), gap(9, 9)]),
        (numbered(1, 2, 5, 6, 8), 9, 3, [gap(4, 4), gap(7, 7), gap(9, 9)]),
        (numbered(1, 2, 5, 6, 8), 9, 6, [gap(7, 7), gap(9, 9)]),
        (numbered(None, 1, 2, None), 2, 0, []),
        (numbered(None, 2, None), 3, 0, [gap(1, 1), gap(3, 3)]),
        (numbered(1, None, 3), 3, 0, [gap(2, 2)]),
        (numbered(None, None), 7, 0, []),
    ],
)
def test_gaps_are_named_by_number(
    entries: Entries, n: int, sealed: int, expected: list[Gap]
) -> None:
    """G7: what is missing above the sealed part is named, wherever it is; strangers are not it."""
    seen = view(entries, n, sealed=sealed, deleted="11-0" if (11, None) in entries else "")
    assert gaps_of(P, seen, audited(entries, seen)) == expected


@given(
    total=st.integers(0, 60),
    gone=st.sets(st.integers(1, 60)),
    strays=st.lists(st.integers(0, 60), max_size=4),
    count=st.integers(1, 9),
)
def test_an_audit_names_exactly_what_is_missing(
    total: int, gone: set[int], strays: list[int], count: int
) -> None:
    """G7: whatever is deleted, and whoever else adds entries, the numbers named are the lost ones.

    A deletion that strangers make up for in number is known where the server tells the highest id
    it deleted.
    """
    entries: list[tuple[int, int | None]] = sorted(
        [(100 * n, n) for n in range(1, total + 1) if n not in gone]
        + [(100 * n + 1 + index, None) for index, n in enumerate(strays)],
        key=lambda one: one[0],
    )
    lost = {n for n in gone if n <= total}
    seen = view(entries, total, deleted=f"{100 * max(lost)}-0" if lost else "")
    found = gaps_of(P, seen, audited(entries, seen, count))
    if seen.first is None and entries:
        assert found == []  # nothing of ours is left between strangers: see the counter instead
        return
    assert sum(one.missing for one in found) == len(lost)
    named = {n for one in found for n in range(one.first, one.last + 1)}
    assert named >= lost
    if len(found) < NAMED:
        assert named == lost


@given(total=st.integers(3, 50), gone=st.sets(st.integers(2, 50)), pages=st.integers(0, 4))
def test_before_it_is_read_a_gap_is_counted(total: int, gone: set[int], pages: int) -> None:
    """G7: what the audit has not reached is told at once, as a count within a range."""
    lost = {n for n in gone if n < total}
    entries = [(n, n) for n in range(1, total + 1) if n not in lost]
    seen = view(entries, total)
    audit: Audit | None = None
    for _ in range(pages):
        if needs_audit(seen, audit):
            audit = audit_of(seen, audit)
            audit = advanced(audit, page(entries, audit.upto, 3), 3)
    found = gaps_of(P, seen, audit)
    assert sum(one.missing for one in found) == len(lost)
    assert all(one.first <= one.last for one in found)
    assert lost <= {n for one in found for n in range(one.first, one.last + 1)}


def test_strangers_that_were_read_are_not_counted_against_a_gap() -> None:
    """G6, G7: what the audit has read of strangers no longer hides what is missing further on."""
    entries = numbered(None, 1, 2, 3, 4, 6, 8)
    seen = view(entries, 8)
    assert sum(one.missing for one in gaps_of(P, seen)) == 1
    audit = audit_of(seen, None)
    audit = advanced(audit, page(entries, audit.upto, 3), 3)
    assert gaps_of(P, seen, audit) == [gap(3, 7, 2)]


def test_appending_does_not_begin_an_audit_again() -> None:
    """G10: an audit that is done stays done while the log only grows; a new gap begins another."""
    entries = numbered(1, 3, 4)
    seen = view(entries, 4)
    audit = audited(entries, seen)
    grown = numbered(1, 3, 4, 5, 6)
    assert not needs_audit(view(grown, 6), audit)
    assert gaps_of(P, view(grown, 6), audit) == [gap(2, 2)]
    assert needs_audit(view(numbered(1, 3, 4, 6), 6), audit)


def test_a_whole_log_is_never_read() -> None:
    """G10: as long as the counts agree, no entry is read, however long the log."""
    assert not needs_audit(view([(n, n) for n in range(1, 1_000)], 999), None)
    assert not needs_audit(view([], 0), None)
    trimmed = view(numbered(5, 6), 6, sealed=4)
    done = Audit((0, "", "1-0"), Place("1-0", 1), done=True)
    assert not needs_audit(trimmed, done)


def test_a_stranger_that_hides_a_deletion_is_seen_through() -> None:
    """G7: a watch that counted the stranger before knows that an event went when counts agree."""
    before = numbered(1, 2, 3, None)
    audit = audited(before, view(before, 3))
    after = [(10, 1), (12, 3), (13, None)]
    seen = view(after, 3)
    assert needs_audit(seen, audit)
    assert gaps_of(P, seen, audited(after, seen, audit=audit)) == [gap(2, 2)]


def test_many_gaps_are_taken_together() -> None:
    """G10: past the bound gaps are one range with the count of what it lacks."""
    numbers = range(1, 101, 2)
    entries = [(n, n) for n in numbers]
    seen = view(entries, 99)
    found = gaps_of(P, seen, audited(entries, seen))
    assert len(found) == NAMED
    assert found[0] == gap(2, 2)
    assert found[-1] == gap(32, 98, 34)


def test_a_lost_counter_is_told() -> None:
    """G2: a counter behind its log gives numbers twice; so does one that did so in the past."""
    assert counter_lost(view(numbered(1, 2), 0))
    assert not counter_lost(view(numbered(1, 2), 2))
    entries = numbered(1, 2, 3, 1, 2)
    audit = audited(entries, view(entries, 2))
    assert audit is not None
    assert audit.restarted == 3
    assert gaps_of(P, view(entries, 2), audit) == []


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
def test_a_log_that_went_back_is_told(
    n: int, before: Place | None, after: Place | None, sealed: int, expected: Gap | None
) -> None:
    """G1: numbers given again tell that the log lost its tail; a deletion leaves them a gap."""
    seen = View(n=n, sealed=sealed, before=before, after=after)
    assert tail_lost(P, seen, place(50, 9)) == expected


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (gap(2, 4), "partition p03: events 2 to 4 are gone"),
        (gap(2, 9, 3), "partition p03: 3 of the events 2 to 9 are gone"),
    ],
)
def test_a_gap_in_words(found: Gap, said: str) -> None:
    """G10: a gap names its partition and its numbers."""
    assert found.told == said
