"""How long a recall waits for its session's own writes."""

import fakeredis
import pytest
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock
from memorybus_workers.jobs.prefetch import ReadYourWrites

LONGEST = 2.0
KEYS = Keys("ns")


class Lane:
    """A lane whose checkpoint moves with the clock."""

    def __init__(self, redis: fakeredis.FakeRedis, clock: FakeClock, rate: float) -> None:
        self.redis, self.clock, self.rate = redis, clock, rate
        self.begin = clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Move the clock, and the checkpoint with it."""
        self.clock.sleep(seconds)
        n = int((self.clock.monotonic() - self.begin) * self.rate)
        self.redis.hset(KEYS.lane(0, "rec"), "n", n)

    def monotonic(self) -> float:
        """Return the fake time."""
        return self.clock.monotonic()

    def now_ms(self) -> int:
        """Return the fake wall time."""
        return self.clock.now_ms()


@pytest.mark.parametrize(
    ("rate", "wanted", "least", "most"),
    [
        (100, 50, 0.5, 0.6),  # applied in half a second
        (10, 1_000, 2.0, 2.1),  # moves, and takes too long: the whole wait
        (0, 1, 0.5, 0.6),  # stands still: a quarter of it
        (100, 0, 0.0, 0.0),  # nothing to wait for
    ],
)
def test_the_wait_is_as_long_as_it_is_worth(fake_redis, fake_clock, rate, wanted, least, most):
    """G9: a recall waits for what moves, bounded, and hardly for what does not."""
    lane = Lane(fake_redis, fake_clock, rate)
    begin = fake_clock.monotonic()
    applied = ReadYourWrites(fake_redis, KEYS, LONGEST, lane).wait("rec", {0: wanted})
    assert least <= fake_clock.monotonic() - begin <= most
    assert applied == (rate * most >= wanted)


def test_nobody_waits_again_for_lanes_that_stand_still(fake_redis, fake_clock):
    """G9: after one vain wait the sessions behind have their turn at once, for a while."""
    applied = ReadYourWrites(fake_redis, KEYS, LONGEST, fake_clock)
    waits = []
    for _ in range(4):
        begin = fake_clock.monotonic()
        assert not applied.wait("rec", {0: 1})
        waits.append(round(fake_clock.monotonic() - begin, 1))
    assert waits == [0.5, 0.0, 0.0, 0.0]
    fake_clock.advance(2.0)
    begin = fake_clock.monotonic()
    applied.wait("rec", {0: 1})
    assert fake_clock.monotonic() - begin >= 0.5
