"""Which jobs are taken for lost, and how long a failing provider is let rest: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.recall.health import pause_after
from memorybus_workers.jobs.lost import MIN_LOOKS, SILENCE_SECONDS, Silence

SIGN = ("started", "job:run")


def looks(silence: Silence, score: float, *times: float) -> list[bool]:
    """Return for each time whether the sign, with this score, counts as lost."""
    return [silence.observe({SIGN: score}, now) == [SIGN] for now in times]


def test_a_sign_that_does_not_change_is_lost() -> None:
    """G9: a sign is lost once it has been the same for the whole silence, and not before."""
    assert looks(Silence(), 1.0, 10, 11, 12, 12.9, 13, 14) == [False] * 4 + [True] * 2


def test_a_sign_that_changes_or_went_away_lives() -> None:
    """G9: a changed sign, and one that went and came again, begin anew."""
    silence = Silence()
    looks(silence, 1.0, 0, 1, 2)
    assert looks(silence, 2.0, 3, 4, 5) == [False] * 3
    assert silence.observe({}, 6) == []
    assert looks(silence, 2.0, 7, 8, 9) == [False] * 3


def test_an_outage_is_no_silence() -> None:
    """G9: after a minute in which nobody could look, a running job gets the time to give a sign."""
    silence = Silence()
    assert looks(silence, 1.0, 0, 1, 60) == [False] * 3
    assert looks(silence, 2.0, 61, 62, 63) == [False] * 3


@given(st.lists(st.tuples(st.floats(0.1, 2.0), st.booleans()), max_size=40))
def test_a_sign_is_lost_exactly_after_its_silence(steps: list[tuple[float, bool]]) -> None:
    """G9: a sign is lost if and only if it last changed a silence and some looks ago."""
    silence = Silence()
    now, score, since, same = 0.0, 0.0, 0.0, 1
    silence.observe({SIGN: score}, now)
    for step, beats in steps:
        now, same = now + step, same + 1
        if beats:
            score, since, same = score + 1, now, 1
        (lost,) = looks(silence, score, now)
        assert lost == (now - since >= SILENCE_SECONDS and same >= MIN_LOOKS)


def test_pauses_are_bounded() -> None:
    """G10: a few failures pause nothing; many pause ever longer, up to half a minute."""
    assert [pause_after(n) for n in range(8)] == [0, 0, 0, 1, 2, 4, 8, 16]
    assert {pause_after(n) for n in (8, 9, 100, 10**9)} == {30}


@pytest.mark.parametrize("failing", range(3, 12))
def test_a_longer_row_pauses_no_shorter(failing: int) -> None:
    """G10: one more failure never shortens the pause."""
    assert pause_after(failing + 1) >= pause_after(failing) > 0
