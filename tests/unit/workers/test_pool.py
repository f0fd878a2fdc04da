"""The pool: what its threads have done is taken in once, and none of it is lost."""

import threading
from types import SimpleNamespace
from typing import cast

from memorybus.clock import SYSTEM
from memorybus.log.entry import LoggedEvent
from memorybus_workers.apply.pool import Pool, Task
from memorybus_workers.calls.tracker import Slot
from memorybus_workers.lanes.lane import Lane


def said(task: Task, _: Slot) -> str:
    """Do a task."""
    return str(task.served)


def task(number: int) -> Task:
    """Return a task of no lane."""
    nothing = SimpleNamespace()
    return Task(cast("Lane", nothing), cast("LoggedEvent", nothing), number, probes=False)


def test_what_was_not_taken_in_is_there_the_next_time() -> None:
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
