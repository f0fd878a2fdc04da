"""How fast a lane goes on, and what wakes its runner."""

import threading

import pytest
from memorybus.events import Envelope, Position, Scope, SessionRef, TurnCompleted
from memorybus.log.entry import OMITTED_ENVELOPES, LoggedEvent
from memorybus.testing import FakeClock
from memorybus_workers.lanes.news import News
from memorybus_workers.lanes.pace import Pace


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
    what = OMITTED_ENVELOPES["filtered"] if left_out else turn
    return [LoggedEvent(Position(0, f"{n}-0", n), what) for n in range(1, count + 1)]


def taken_in(clock: FakeClock, pace: Pace, seconds: float) -> int:
    """Take as much as goes in some time; return how much that was."""
    until, taken = clock.monotonic() + seconds, 0
    while clock.monotonic() < until:
        while pace.batch_size(500) and (part := pace.take(turns(500))):
            taken += len(part)
        clock.advance(min(max(0.001, pace.seconds_to_wait()), until - clock.monotonic() + 0.001))
    return taken


def test_no_rate_is_no_bound(fake_clock):
    """Without a rate everything goes on at once."""
    pace = Pace(fake_clock)
    assert pace.batch_size(500) == 500
    assert len(pace.take(turns(500))) == 500
    assert pace.seconds_to_wait() == 0


@pytest.mark.parametrize(
    ("rate", "mine", "all_of_them", "part"),
    [
        (10.0, 4, 4, 1.0),
        (400.0, 2, 2, 1.0),
        (0.5, 1, 1, 1.0),
        (40.0, 1, 4, 0.25),
        (40.0, 0, 4, 0.0),
    ],
)
@pytest.mark.slow(reason="thousands of simulated events")
def test_a_rate_holds_over_time(fake_clock, rate, mine, all_of_them, part):
    """So many events a second go on, of which a worker has its unfinished lanes' part."""
    pace = Pace(fake_clock, rate, lambda: all_of_them)
    pace.take_share([False] * mine + [True])
    assert taken_in(fake_clock, pace, 20.0) == pytest.approx(rate * part * 20, abs=2)


def test_a_part_moves_with_its_lanes(fake_clock):
    """Lanes that have all, or went to others, take their part with them; the whole is asked seldom.

    Who knows less than there is has never more than the whole.
    """
    asked: list[float] = []
    unfinished = iter([4, 2, 1])

    def count() -> int:
        asked.append(fake_clock.monotonic())
        return next(unfinished)

    pace = Pace(fake_clock, 40.0, count)
    for mine, part in ((2, 0.5), (1, 0.25), (1, 0.5), (2, 1.0)):
        pace.take_share([False] * mine)
        assert taken_in(fake_clock, pace, 0.25) == pytest.approx(40 * part * 0.25, abs=2)
    assert len(asked) == 2


def test_what_is_left_out_is_free(fake_clock):
    """A plan that takes one session of many is not slowed down by the others."""
    pace = Pace(fake_clock, 1.0)
    for _ in range(100):
        events = turns(pace.batch_size(500), left_out=True)
        assert events
        assert pace.take(events) == events


def test_what_is_announced_is_in_every_inbox_until_it_is_taken():
    """Each runner hears of all partitions with news, and takes them once."""
    news = News()
    one, other = news.subscribe(), news.subscribe()
    news.announce({1})
    news.announce({2})
    assert one.take() == {1, 2}
    assert one.take() == set()
    assert other.take() == {1, 2}


def test_an_inbox_that_is_given_up_gets_nothing_more():
    """G10: what is announced is not kept for a runner that was given up."""
    news = News()
    inbox = news.subscribe()
    news.unsubscribe(inbox)
    news.unsubscribe(inbox)
    news.announce({1})
    assert inbox.take() == set()


def test_what_came_since_the_last_look_is_not_waited_for():
    """A runner that was woken while it worked does not rest; taking is what ends the call."""
    inbox = News().subscribe()
    inbox.put()
    began = threading.Event()

    def rest() -> None:
        inbox.wait(60)
        began.set()

    threading.Thread(target=rest, daemon=True).start()
    assert began.wait(10)


def test_a_runner_that_rests_is_woken():
    """What is announced while a runner rests ends its rest."""
    news = News()
    inbox = news.subscribe()
    woken = threading.Event()

    def rest() -> None:
        inbox.wait(60)
        woken.set()

    threading.Thread(target=rest, daemon=True).start()
    news.announce({3})
    assert woken.wait(10)
    assert inbox.take() == {3}
