"""What people read of what was refused."""

import pytest
from memorybus_console.operations.ingest.foreign.records import ForeignError
from memorybus_console.operations.ingest.reading.model import TranscriptError
from memorybus_console.operations.ingest.report import RefusedInput, UnreadableInput


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
