"""The pool: what its threads have done is taken in once, and none of it is lost."""

import threading
from types import SimpleNamespace
from typing import cast

from helpers.processes.waiting import wait_until
from memorybus.clock import SYSTEM
from memorybus.log.entry import LoggedEvent
from memorybus_workers.apply.pool import Pool, Task
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
