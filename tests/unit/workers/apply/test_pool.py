"""Calls of a batch: on the pool, in bulk, and one by one."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from helpers.processes.waiting import wait_until
from memorybus.clock import SYSTEM
from memorybus.errors import LeaseLost, Permanent, Transient
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.log.entry import LoggedEvent
from memorybus_providers.base import HookContext, MemoryProvider
from memorybus_workers.apply.bulk import send_turns, sort_outcomes
from memorybus_workers.apply.pool import Pool, Task
from memorybus_workers.apply.serial import ChunkOutcome
from memorybus_workers.apply.transactional import TransactionalApplier
from memorybus_workers.calls.retry import TryVerdict
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.lanes.lane import Lane


def said(task: Task, _: ThreadActivity) -> str:
    """Do a task."""
    return str(task.served)


def task(number: int) -> Task:
    """Return a task of no lane."""
    nothing = SimpleNamespace()
    return Task(cast("Lane", nothing), cast("LoggedEvent", nothing), number, probes=False)


def test_what_was_not_taken_in_is_there_the_next_time():
    """G4, G5: Redis goes away while one outcome is taken in: the others are not lost with it."""
    done = threading.Semaphore(0)
    pool = Pool("p", 1, SYSTEM, said, done.release)
    for number in range(3):
        pool.submit(task(number))
    for _ in range(3):
        assert done.acquire(timeout=10)
    assert next(pool.collect()).reply == "0"  # then Redis goes away
    assert pool.unfinished == 2
    assert [one.reply for one in pool.collect()] == ["1", "2"]
    assert pool.unfinished == 0
    pool.stop()


def test_the_last_call_to_return_closes_the_instance():
    """G6: while calls are under way an instance is not closed; then it is, once, by the last."""
    begun, goes_on, closed = threading.Semaphore(0), threading.Semaphore(0), threading.Event()
    closings: list[str] = []

    def wait(task: Task, _: ThreadActivity) -> str:
        begun.release()
        assert goes_on.acquire(timeout=10)
        return str(task.served)

    def close() -> None:
        closings.append(threading.current_thread().name)
        closed.set()

    pool = Pool("p", 2, SYSTEM, wait, lambda: None)
    for number in range(3):
        pool.submit(task(number))
    for _ in range(2):
        assert begun.acquire(timeout=10)
    assert not pool.release(close)
    goes_on.release()
    assert not closed.wait(0.05)
    goes_on.release()
    assert closed.wait(10)
    assert len(closings) == 1
    assert closings[0].startswith("memorybus-p-")
    assert not begun.acquire(blocking=False), "no further call begins"


def test_an_instance_without_a_call_under_way_is_closed_by_who_ends_it():
    """G6: nothing is under way: the pool says so, and calls nothing later."""
    done = threading.Semaphore(0)
    closings: list[str] = []
    pool = Pool("p", 1, SYSTEM, said, done.release)
    pool.submit(task(1))
    assert done.acquire(timeout=10)
    assert pool.release(lambda: closings.append("late"))
    pool.stop()
    wait_until(lambda: not pool._threads[0].alive, "its thread has ended")
    assert closings == []


BAD = Transient("not now")


def turn(name: str, key: str) -> LoggedEvent:
    """Return an entry of which only id and key matter."""
    envelope = SimpleNamespace(id=name, key=key, event=TurnCompleted(user=name))
    return cast("LoggedEvent", SimpleNamespace(envelope=envelope))


def context(event: LoggedEvent) -> HookContext:
    """Return a context."""
    session = SessionRef(id="s", root="s")
    return HookContext(Scope(), session, event.envelope.id, Position(0, "1-1", 1), 0, 5.0)


def sent(answer: Any, *events: LoggedEvent) -> Any:
    """Send events to a provider that answers so."""
    return send_turns(
        cast("MemoryProvider", SimpleNamespace(sync_turns=lambda _: answer)), events, context
    )


def test_what_stands_behind_a_failure_stays_open():
    """G3: a turn behind one of its key that failed is not done, though it was not named."""
    one, two, other, three = turn("1", "a"), turn("2", "a"), turn("3", "b"), turn("4", "a")
    found = sort_outcomes((one, two, other, three), {"2": BAD})
    assert found.done == [one, other]
    assert found.failed == [(two, BAD)]
    assert found.behind == [three]


def test_of_one_key_the_first_failure_counts():
    """G3: a second failure of a key is what follows from the first: it is tried behind it."""
    one, two = turn("1", "a"), turn("2", "a")
    found = sort_outcomes((one, two), {"2": BAD, "1": BAD})
    assert (found.done, found.failed, found.behind) == ([], [(one, BAD)], [two])


@pytest.mark.parametrize("answer", [None, ["1"], {"9": BAD}, {"1": "not now"}])
def test_an_answer_that_is_none_is_refused(answer):
    """An answer that does not say what failed leaves open what is remembered."""
    with pytest.raises(Permanent):
        sent(answer, turn("1", "a"))


def test_what_failed_is_what_the_provider_names():
    """The answer of a provider that keeps the rules goes on as it is."""
    assert sent({"1": BAD}, turn("1", "a"), turn("2", "a")) == {"1": BAD}


class Losing(TransactionalApplier):
    """Loses its lane in the midst of a batch that goes one by one."""

    def __init__(self) -> None:
        self._whole = False

    def _try(self, lane: Lane, event: LoggedEvent) -> TryVerdict:
        assert self._whole
        raise LeaseLost("another has it")


def test_a_lane_that_is_lost_leaves_the_next_one_careful():
    """G3: that everything below an event is done was true of the lost lane, not of the next one."""
    applier = Losing()
    window = type("Window", (), {"idle": True})
    lane = cast("Lane", type("Held", (), {"window": window}))
    with pytest.raises(LeaseLost):
        applier._try_one_by_one(lane, [cast("LoggedEvent", None)], ChunkOutcome(set(), {}))
    assert not applier._whole
