"""Recall jobs: hostile requests, pauses, and the wait for one's own writes."""

import fakeredis
import msgspec
import pytest
from memorybus.config.settings import Settings
from memorybus.errors import Permanent, Unavailable
from memorybus.jobs.inspect import CheckHealth, Inspection
from memorybus.jobs.tools import ToolRequest
from memorybus.jobs.waiting import Reply, read_replies
from memorybus.recall.health import pause_after
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock
from memorybus_workers.jobs.prefetch import ReadYourWrites
from memorybus_workers.jobs.tools import answer_request, parse_request

ASKED = Inspection(id="a" * 32, provider="p", instance="p", question=CheckHealth())


@pytest.mark.parametrize("kind", [Inspection, ToolRequest])
@pytest.mark.parametrize("body", ["", "{}", "[" * 5_000, "\ud800", 7])
def test_what_is_no_request_is_refused(kind, body):
    """G9: anybody who can write to Redis may have sent it: it costs an error and nothing else."""
    with pytest.raises(Permanent, match=f"no {kind.__name__}"):
        parse_request(body, kind)


def test_an_id_that_is_none_is_refused():
    """No reply is written to a key that somebody else chooses."""
    assert parse_request(msgspec.json.encode(ASKED).decode(), Inspection) == ASKED
    other = msgspec.json.encode(msgspec.structs.replace(ASKED, id="a:b")).decode()
    with pytest.raises(Permanent, match="its id is none"):
        parse_request(other, Inspection)


def test_who_asks_gets_the_error_which_goes_on(fake_redis):
    """G9: nobody waits in vain for what failed, and the failure is the job's, too."""
    settings = Settings()
    key = Keys(settings.namespace).reply(0, ASKED.id)

    def fail() -> Reply:
        raise Unavailable("the backend is down")

    with pytest.raises(Unavailable):
        answer_request(fake_redis, settings, 0, ASKED, fail)
    assert "the backend is down" in read_replies(fake_redis.hgetall(key))["p"].error
    answer_request(fake_redis, settings, 0, ASKED, lambda: Reply("well"))
    assert read_replies(fake_redis.hgetall(key)) == {"p": Reply("well")}


def test_pauses_are_bounded():
    """G10: a few failures pause nothing; many pause ever longer, up to half a minute."""
    assert [pause_after(n) for n in range(8)] == [0, 0, 0, 1, 2, 4, 8, 16]
    assert {pause_after(n) for n in (8, 9, 100, 10**9)} == {30}


@pytest.mark.parametrize("failing", range(3, 12))
def test_a_longer_row_pauses_no_shorter(failing):
    """G10: one more failure never shortens the pause."""
    assert pause_after(failing + 1) >= pause_after(failing) > 0


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
