"""Requests for recalls that wait for their events: which are kept, in which order, how many."""

import random
from pathlib import Path

import msgspec
import pytest
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.events import Scope, SessionRef
from memorybus.recall import pending
from memorybus.recall.model import Ask, CarryAsk, RecallRequest, WarmAsk, build_request
from memorybus.recall.pending import MAX_ASKS, REPLY_TIMEOUT, PendingAsks
from memorybus.recall.queue import request_keys, rq_queue
from memorybus.recall.requester import still_awaited
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock
from redis import Redis


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


@pytest.mark.parametrize("workspace", ["", "boat"])
def test_a_request_says_in_full_whose_memories(workspace):
    """G9: no part of a session's scope is left to a reader, whose defaults may be wider."""
    scope = Scope(workspace=workspace, platform="cli")
    written = msgspec.json.encode(build_request(scope, SessionRef("s", "s"), "q", 100))
    named = msgspec.json.decode(written, type=dict[str, object])
    assert [named[part] for part in ("agent", "user", "workspace")] == [
        scope.agent,
        scope.user,
        workspace,
    ]
    assert msgspec.json.decode(written, type=RecallRequest).workspace == workspace


def test_the_keys_are_those_of_prompts_and_of_rq():
    """G9: a worker looks where prompts ask, and where RQ keeps what waits, was taken or began."""
    settings = Settings(data_dir=Path("/nowhere"))
    queue = rq_queue(Redis(), settings, "notes")
    prompts = Keys(settings.namespace).asks("notes")
    theirs = (queue.key, queue.intermediate_queue_key, queue.started_job_registry.key)
    assert request_keys(settings.namespace, "notes") == (prompts, *theirs)


NOW = 1_000.0


@pytest.mark.parametrize(
    ("case", "before", "away", "running", "expected"),
    [
        ("nothing has changed", ["a", "b"], {}, ["a", "b"], {}),
        ("b's worker has just gone", ["a", "b"], {}, ["a"], {"b": NOW}),
        ("it went before", ["a"], {"b": NOW - 30}, ["a"], {"b": NOW - 30}),
        ("it has been away for long", ["a"], {"b": NOW - 31}, ["a"], {}),
        ("it is back", ["a"], {"b": NOW - 5}, ["a", "b"], {}),
        ("nobody is left", ["a", "b"], {}, [], {"a": NOW, "b": NOW}),
        ("it never had one", ["a"], {}, ["a"], {}),
    ],
)
def test_a_provider_whose_worker_is_replaced_is_awaited_for_a_while(
    case, before, away, running, expected
):
    """G9: what is asked while a worker is replaced waits for the next one, and is not left out."""
    assert still_awaited(before, away, running, NOW) == expected, case
