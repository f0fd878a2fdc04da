"""How memories age: pure, so every case is a row of a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.config.settings import Settings
from memorybus.events import Scope
from memorybus_workers.curating.transitions import Change, CuratedMemory, transitions
from msgspec.structs import replace

DAY = 86_400_000
NOW = 20_000 * DAY
SETTINGS = Settings()  # stale after 30 days, archived after 90
ANN = Scope(user="ann")


def days_ago(days: float) -> int:
    """Return a time before now."""
    return NOW - round(days * DAY)


def memory(state: str = "active", **days: float) -> CuratedMemory:
    """Return a memory whose times are given in days before now."""
    times = {name: days_ago(ago) for name, ago in days.items()}
    return CuratedMemory("0" * 14, ANN, state=state, **times)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (memory(created=29.9), None),
        (memory(created=30), "stale"),
        (memory(created=400, used=29), None),
        (memory(created=400, used=31), "stale"),
        (memory(created=400, since=3), None),
        (memory(created=-5), None),
        (memory("stale", created=89, since=60), None),
        (memory("stale", created=90, since=60), "archived"),
        (memory("stale", created=400, since=1), None),
        (memory("stale", created=400, since=59.9), None),
        (memory("stale", created=400, used=2, since=3), "active"),
        (memory("stale", created=400, used=3, since=2), None),
        (memory("stale", created=5, since=-300), "active"),
        (memory("stale", created=400, used=5, since=-300), "active"),
        (memory("stale", created=400, since=-300), None),
        (memory("archived", created=400, since=200), None),
        (memory("archived", created=400, used=1, since=200), "active"),
        (memory("archived", created=400, used=40, since=200), None),
        (memory("pinned", created=4_000), None),
        (memory("pinned", created=4_000, used=1, since=9), None),
    ],
)
def test_a_memory_ages_by_its_last_use(before, after):
    """Age and use decide alone: a memory is stale, then archived, and back by use."""
    changes = transitions([before], NOW, SETTINGS)

    assert [change.after for change in changes] == ([after] if after else [])
    assert all(change.reason for change in changes)


def test_a_repetition_stays_archived_though_it_is_used():
    """What another memory stands for does not come back by use."""
    used = replace(memory("archived", created=400, used=1, since=200), successor="1" * 14)

    assert transitions([used], NOW, SETTINGS) == []


def test_a_clock_that_jumps_a_year_archives_nothing_at_once():
    """A clock ahead of time makes memories stale at most, and they recover when it is set back."""
    young = memory(created=3)
    (ahead,) = transitions([young], NOW + 365 * DAY, SETTINGS)
    stale = replace(young, state=ahead.after, since=ahead.at(NOW + 365 * DAY))

    assert ahead.after == "stale"
    assert transitions([stale], NOW + 366 * DAY, SETTINGS) == []
    (back,) = transitions([stale], NOW, SETTINGS)
    assert back.after == "active"
    assert back.at(NOW) > stale.since


times = st.integers(0, 2 * NOW)
memories = st.builds(
    CuratedMemory,
    name=st.sampled_from(("a", "b")),
    scope=st.just(ANN),
    created=times,
    state=st.sampled_from(("active", "stale", "archived", "pinned")),
    since=times,
    used=times,
    successor=st.sampled_from(("", "c")),
)


def applied(change: Change, now: int) -> CuratedMemory:
    """Return a memory after its change."""
    return replace(change.memory, state=change.after, since=change.at(now))


@given(memories, times)
def test_a_run_repeated_at_once_changes_nothing(before, now):
    """A second run at the same time finds nothing left to do, whatever the clocks were."""
    for change in transitions([before], now, SETTINGS):
        assert before.state != "pinned"
        assert change.after != before.state
        assert change.at(now) > before.since
        assert transitions([applied(change, now)], now, SETTINGS) == []


@given(st.lists(memories), times)
def test_each_memory_is_judged_by_itself(some, now):
    """No memory's change depends on another, and the order is kept."""
    alone = [change for one in some for change in transitions([one], now, SETTINGS)]
    assert transitions(some, now, SETTINGS) == alone
