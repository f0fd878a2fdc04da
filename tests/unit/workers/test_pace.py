"""A rate bounds what an instance takes, and not what its plan leaves out."""

import pytest
from memorybus.events import Envelope, Position, Scope, SessionRef, TurnCompleted
from memorybus.logged import OMITTED, LoggedEvent
from memorybus.testing import FakeClock
from memorybus_workers.pace import Pace


def turns(count: int, *, left_out: bool = False) -> list[LoggedEvent]:
    """Return events, or places of such that are left out."""
    turn = Envelope(
        id="0" * 32,
        key="k",
        scope=Scope(),
        session=SessionRef("s", "s"),
        at=0,
        event=TurnCompleted(),
    )
    what = OMITTED["filtered"] if left_out else turn
    return [LoggedEvent(Position(0, f"{n}-0", n), what) for n in range(1, count + 1)]


def taken_in(clock: FakeClock, pace: Pace, seconds: float) -> int:
    """Take as much as goes in some time; return how much that was."""
    until, taken = clock.monotonic() + seconds, 0
    while clock.monotonic() < until:
        while pace.batch(500) and (part := pace.taken(turns(500))):
            taken += len(part)
        clock.advance(max(0.001, pace.wait()))
    return taken


def test_no_rate_is_no_bound(fake_clock: FakeClock) -> None:
    """Without a rate everything goes on at once."""
    pace = Pace(fake_clock)
    assert pace.batch(500) == 500
    assert len(pace.taken(turns(500))) == 500
    assert pace.wait() == 0


@pytest.mark.parametrize(("rate", "part"), [(10.0, 1.0), (400.0, 1.0), (0.5, 1.0), (40.0, 0.25)])
def test_a_rate_holds_over_time(fake_clock: FakeClock, rate: float, part: float) -> None:
    """So many events a second go on, of which a worker has its lanes' part."""
    pace = Pace(fake_clock, rate)
    pace.share(part)
    assert taken_in(fake_clock, pace, 20.0) == pytest.approx(rate * part * 20, abs=2)


def test_what_is_left_out_is_free(fake_clock: FakeClock) -> None:
    """A plan that takes one session of many is not slowed down by the others."""
    pace = Pace(fake_clock, 1.0)
    for _ in range(100):
        events = turns(pace.batch(500), left_out=True)
        assert events
        assert pace.taken(events) == events
