"""Times as people write them for commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.text.times import parse_ago

NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1_800),
        ("2h", 7_200),
        ("1.5 h", 5_400),
        ("7d", 604_800),
        ("3w", 1_814_400),
    ],
)
def test_how_long_ago_is_a_time(text, seconds):
    """A number and a unit are that long before the present."""
    assert parse_ago(text, NOW) == NOW - seconds * 1000


@pytest.mark.parametrize("text", ["", "2", "h", "2 hours", "-2h", "p07:1234", "2026-05-31", "2h3m"])
def test_anything_else_is_no_such_time(text):
    """Times, positions and ids of events are left to who reads those."""
    assert parse_ago(text, NOW) is None


@given(st.integers(0, 999_999), st.sampled_from("smhdw"))
def test_no_time_lies_before_all_time(number, unit):
    """However long ago it was, the time can be shown and compared."""
    found = parse_ago(f"{number}{unit}", NOW)
    assert found is not None
    assert 1 <= found <= NOW
