"""How far one lags behind another."""

from memorybus_console.operations.moments import count_behind


def test_behind_counts_what_is_missing_only():
    """Who is ahead in one partition does not make up for another."""
    assert count_behind({0: 5, 1: 9}, {0: 7, 1: 1, 2: 3}) == 5
