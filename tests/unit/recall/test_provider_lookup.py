"""Which providers are asked ahead: those that a worker serves, or served a moment ago (G9)."""

import pytest
from memorybus.recall.requester import still_awaited

NOW = 1_000.0


@pytest.mark.parametrize(
    ("case", "before", "away", "running", "expected"),
    [
        ("nothing has changed", ["a", "b"], {}, ["a", "b"], {}),
        ("b's worker has just gone", ["a", "b"], {}, ["a"], {"b": NOW}),
        ("it went before", ["a"], {"b": NOW - 30}, ["a"], {"b": NOW - 30}),
        ("it has been away for long", ["a"], {"b": NOW - 31}, ["a"], {}),
        ("it is back", ["a"], {"b": NOW - 5}, ["a", "b"], {}),
        ("nobody is left", ["a", "b"], {}, [], {"a": NOW, "b": NOW}),
        ("it never had one", ["a"], {}, ["a"], {}),
    ],
)
def test_a_provider_whose_worker_is_replaced_is_awaited_for_a_while(
    case, before, away, running, expected
):
    """G9: what is asked while a worker is replaced waits for the next one, and is not left out."""
    assert still_awaited(before, away, running, NOW) == expected, case
