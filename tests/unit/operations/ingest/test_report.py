"""What an ingest of several sources reports."""

import pytest
from memorybus_console.operations.ingest.foreign.records import ForeignError
from memorybus_console.operations.ingest.reading.model import TranscriptError
from memorybus_console.operations.ingest.report import (
    IngestReport,
    RefusedInput,
    UnreadableInput,
    sum_reports,
)


def test_counts_and_refusals_of_all_sources_are_added():
    """Each source counts, and refusals keep their order."""
    first, second = RefusedInput("a", "x"), RefusedInput("b", "y")
    talks = IngestReport(files=2, sessions=3, turns=7, skipped=1, refused=(first,))
    events = IngestReport(files=1, events=5, skipped=2, refused=(second,))
    assert sum_reports([talks, events]) == IngestReport(
        files=3, sessions=3, turns=7, events=5, skipped=3, refused=(first, second)
    )


@pytest.mark.parametrize(
    ("levels", "level"),
    [
        ([], None),
        ([None], None),
        ([None, "logged"], "logged"),
        (["spooled", None, "logged"], "spooled"),
    ],
)
def test_it_is_as_safe_as_its_least_safe_source(levels, level):
    """G1: `logged` is said only if Redis has all of it; what published nothing does not count."""
    assert sum_reports([IngestReport(level=one) for one in levels]).level == level


def test_what_is_left_out_is_added_by_kind():
    """Unreadable lines and what is dropped count over all sources."""
    first = IngestReport(unread=2, dropped={"reasoning": 1})
    second = IngestReport(unread=3, dropped={"reasoning": 2, "relations": 4})
    total = sum_reports([first, second])
    assert (total.unread, total.dropped) == (5, {"reasoning": 3, "relations": 4})


def _unreadable(error: UnreadableInput) -> RefusedInput:
    return RefusedInput.unreadable("a.jsonl", error)


@pytest.mark.parametrize(
    ("refusal", "shown"),
    [
        (RefusedInput("a.jsonl: s: turn 2", "too large"), "a.jsonl: s: turn 2: too large"),
        (_unreadable(TranscriptError("not JSON", "a.jsonl:2")), "a.jsonl:2: not JSON"),
        (_unreadable(ForeignError("a page without 'items'")), "a.jsonl: a page without 'items'"),
        (_unreadable(ForeignError("a.jsonl is no page")), "a.jsonl: a.jsonl is no page"),
    ],
)
def test_a_place_is_named_once(refusal, shown):
    """Whether the reason has its own place is known, not read from its words."""
    assert refusal.describe() == shown
