"""Which jobs are taken for lost, and how long a failing provider is let rest: pure."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.recall.health import pause_after
from memorybus_workers.jobs.lost import LOST_LOOKS, Sign, count_looks


def is_lost(*values: float | None) -> list[bool]:
    """Return at each look, with this value of a sign or without it, whether its job is lost."""
    looks: dict[Sign, int] = {}
    lost = []
    for value in values:
        looks = count_looks(looks, [] if value is None else [Sign("started", b"job:run", value)])
        lost.append(any(count >= LOST_LOOKS for count in looks.values()))
    return lost


def test_a_sign_that_does_not_change_is_lost():
    """G9: a sign is lost once it has been the same at so many looks, and not before."""
    assert is_lost(1, 1, 1, 1, 1) == [False] * 3 + [True] * 2


def test_a_sign_that_changes_or_went_away_lives():
    """G9: a changed sign, and one that went and came again, begin anew."""
    assert is_lost(1, 1, 1, 2, 2, 2, None, 2, 2, 2) == [False] * 10


@given(st.lists(st.booleans(), max_size=40))
def test_a_sign_is_lost_exactly_after_its_looks(beats):
    """G9: a sign is lost if and only if it last changed so many looks ago."""
    values = list(accumulate(beats, initial=0))
    same = [values[: n + 1].count(value) for n, value in enumerate(values)]
    assert is_lost(*values) == [count >= LOST_LOOKS for count in same]


def test_pauses_are_bounded():
    """G10: a few failures pause nothing; many pause ever longer, up to half a minute."""
    assert [pause_after(n) for n in range(8)] == [0, 0, 0, 1, 2, 4, 8, 16]
    assert {pause_after(n) for n in (8, 9, 100, 10**9)} == {30}


@pytest.mark.parametrize("failing", range(3, 12))
def test_a_longer_row_pauses_no_shorter(failing):
    """G10: one more failure never shortens the pause."""
    assert pause_after(failing + 1) >= pause_after(failing) > 0
