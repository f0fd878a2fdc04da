"""Rates: growth over the last seconds, for totals that come and grow."""

from memorybus_workers.membership.presence import Rates


def test_a_rate_is_the_growth_of_the_last_seconds():
    """G10: what was fast a minute ago counts no more; what is new has grown from nothing."""
    rates = Rates()
    assert rates.note(0, {"a": 0}) == {}
    assert rates.note(1, {"a": 100}) == {"a": 100}
    for second in range(2, 12):
        rates.note(second, {"a": 100})
    assert rates.note(12, {"a": 100, "b": 50}) == {"a": 0, "b": 5}


def test_a_clock_that_stands_gives_no_rate():
    """G10: two looks at one moment divide by nothing."""
    rates = Rates()
    rates.note(5, {"a": 1})
    assert rates.note(5, {"a": 2}) == {}
