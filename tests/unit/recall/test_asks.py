"""Requests for recalls that wait for their events: which are kept, in which order, how many."""

import random

import pytest
from memorybus.errors import LogUnavailable
from memorybus.recall import pending
from memorybus.recall.model import CarryAsk, RecallRequest, WarmAsk
from memorybus.recall.pending import MAX_ASKS, REPLY_TIMEOUT, Ask, PendingAsks
from memorybus.testing import FakeClock


class Asked:
    """Notes what is asked; fails while `down`, and takes `seconds` for each."""

    def __init__(self, clock: FakeClock) -> None:
        self.seen: list[Ask] = []
        self.down = False
        self.seconds = 0.0
        self._clock = clock

    def ask(self, ask: Ask) -> None:
        """Note it, or fail."""
        self._clock.advance(self.seconds)
        if self.down:
            raise LogUnavailable("jobs: Timeout reading from socket")
        self.seen.append(ask)


@pytest.fixture(name="asker")
def _asker(fake_clock: FakeClock) -> Asked:
    return Asked(fake_clock)


@pytest.fixture(name="waiting")
def _waiting(fake_clock: FakeClock) -> PendingAsks:
    return PendingAsks(fake_clock, random.Random(1))


def question(slot: str, text: str = "q", sequence: int = 0) -> WarmAsk:
    """Return a session's question."""
    return WarmAsk(slot, sequence, RecallRequest(text))


def test_a_question_leaves_what_is_carried_over(waiting, asker):
    """G9: right after a switch a session asks, and still gets what its conversation had warm."""
    carried = CarryAsk("new", 0, "old")
    waiting.put(carried)
    waiting.put(question("new", "first"))
    waiting.put(question("new", "second"))
    waiting.send(asker, 0)
    assert asker.seen == [carried, question("new", "second")]


def test_after_a_failure_the_order_stays(waiting, asker, fake_clock):
    """G9: what could not be asked comes before what came since, in the words of the newest."""
    for ask in (CarryAsk("a", 0, "b"), question("a", "old"), question("c")):
        waiting.put(ask)
    asker.down = True
    waiting.send(asker, 0)
    waiting.put(question("d"))
    waiting.put(question("a", "new"))
    asker.down = False
    fake_clock.advance(1)
    waiting.send(asker, 0)
    assert asker.seen == [CarryAsk("a", 0, "b"), question("c"), question("d"), question("a", "new")]


def test_what_may_wait_is_bounded(waiting, asker):
    """G10: never more than `MAX_ASKS` wait, also when a failure puts some back; all are counted."""
    more = 10
    for number in range(MAX_ASKS + more):
        waiting.put(question(f"s{number}"))
    assert waiting.dropped == more

    class Late(Asked):
        def ask(self, ask: Ask) -> None:
            for number in range(more):
                waiting.put(question(f"late{number}"))
            super().ask(ask)

    late = Late(FakeClock())
    late.down = True
    waiting.send(late, 0)
    assert waiting.dropped == 2 * more


def test_asking_has_its_time(waiting, asker):
    """G9: a slow jobs' Redis holds the events up for `REPLY_TIMEOUT` and one request."""
    asker.seconds = REPLY_TIMEOUT / 2
    for number in range(5):
        waiting.put(question(f"s{number}"))
    counts = []
    for _ in range(3):
        waiting.send(asker, 0)
        counts.append(len(asker.seen))
    assert counts == [2, 4, 5]


def test_a_hanging_one_is_asked_seldom(waiting, asker, fake_clock):
    """G9: a jobs' Redis that hangs costs the sending of events a tenth of its time at most."""
    asker.down, asker.seconds = True, REPLY_TIMEOUT
    waiting.put(question("s"))
    spent, began = 0.0, fake_clock.monotonic()
    while fake_clock.monotonic() < began + 120:
        before = fake_clock.monotonic()
        waiting.send(asker, 0)
        spent += fake_clock.monotonic() - before
        fake_clock.advance(0.05)
    assert pending.REPLY_TIMEOUT < spent < 12
