"""A fork waits until no thread is inside SQLite or an import."""

import os
import signal
import threading
from collections.abc import Callable

import pytest
from helpers.processes.forked import in_child
from helpers.processes.interrupts import at_every_instruction
from helpers.processes.waiting import still, wait_until
from memorybus.concurrency import forking
from memorybus.concurrency.forking import ForkGuard, ProcessLock, sqlite_guard

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def started(work: Callable[[], object]) -> threading.Thread:
    """Run something on a thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


class User:
    """A thread that is inside until it is told to leave."""

    def __init__(self) -> None:
        self.inside, self.leave = threading.Event(), threading.Event()
        self.thread = started(self._stay)

    def _stay(self) -> None:
        with sqlite_guard():
            self.inside.set()
            self.leave.wait(60)

    def end(self) -> None:
        """Leave."""
        self.leave.set()
        self.thread.join()


def fork() -> None:
    """Fork a child that can enter, and finds nobody inside."""

    def child() -> None:
        assert not sqlite_guard().inside
        with sqlite_guard():
            assert len(sqlite_guard().inside) == 1

    in_child(child)


def test_a_fork_waits_for_every_user(monkeypatch):
    """G9: it begins when the last user has left, and none enters until it is over."""
    monkeypatch.setattr(
        sqlite_guard(), "patience", 30.0
    )  # the machine may stand still for a second
    users = [User(), User()]
    assert all(user.inside.wait(10) for user in users)
    forked = started(fork)
    wait_until(lambda: sqlite_guard().forks, "the fork waits")
    late = User()
    users[0].end()
    wait_until(still(forked.is_alive, 0.05), "one user is left")
    assert forked.is_alive()
    assert not late.inside.is_set()
    users[1].end()
    wait_until(lambda: not forked.is_alive(), "the fork is over")
    assert late.inside.wait(10)
    late.end()
    assert not sqlite_guard().inside
    assert not sqlite_guard().forks


@pytest.mark.timeout(20)
def test_who_forks_may_enter():
    """G9: a signal's handler that publishes while its thread waits to fork does not wait for it."""
    one, entered = ForkGuard(1.0), list[int]()
    one.inside.add(0)  # some other thread
    one.forks.append(None)

    def handler(number: int, frame: object) -> None:
        with one:
            entered.append(number)
        one.inside.discard(0)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        one._await_users()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert entered == [signal.SIGALRM]


def test_a_fork_does_not_wait_for_ever():
    """G9: a user that hangs holds a fork up for a second, not more; the child is without it."""
    user = User()
    assert user.inside.wait(10)
    forked = started(fork)
    wait_until(lambda: not forked.is_alive(), "the fork is over", 10)
    assert user.thread.is_alive()
    user.end()


def test_an_interrupt_holds_nobody_up():
    """G9: wherever an interrupt falls, users and forks go on, and the next visit leaves no mark."""

    def visit() -> None:
        with sqlite_guard():
            pass

    steps = 0
    for steps in at_every_instruction(forking, visit):
        other = started(visit)
        other.join(20)
        assert not other.is_alive()
        visit()
        assert not sqlite_guard().inside, f"interrupted at instruction {steps}"
    assert steps > 10


def test_a_lock_that_is_held_at_a_fork_is_free_in_the_child():
    """G9: threads of one process share the lock; a child has its own."""
    lock = ProcessLock()
    assert lock.here() is lock.here()
    with lock.here():
        assert not lock.here().acquire(blocking=False)

        def child() -> None:
            assert os.getpid() != os.getppid()
            assert lock.here().acquire(timeout=5)

        in_child(child)
