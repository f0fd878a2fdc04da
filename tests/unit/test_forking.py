"""A fork waits until no thread is inside SQLite."""

import os
import threading
from collections.abc import Callable

import pytest
from helpers.waiting import still, wait_until
from memorybus.forking import Undisturbed, undisturbed


def started(work: Callable[[], object]) -> threading.Thread:
    """Run something on a thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_fork_waits_for_every_user() -> None:
    """G9: it begins when the last user has left, and none enters until it is over."""
    one = Undisturbed()
    one.__enter__()
    one.__enter__()
    fork = started(one.before_fork)
    one.__exit__()
    wait_until(still(fork.is_alive, 0.05), "one user is left")
    assert fork.is_alive()
    one.__exit__()
    wait_until(lambda: not fork.is_alive(), "the fork begins")
    user = started(one.__enter__)
    wait_until(still(user.is_alive, 0.05), "it is under way")
    assert user.is_alive()
    one.after_in_parent()
    wait_until(lambda: not user.is_alive(), "it is over")


def test_a_fork_does_not_wait_for_ever() -> None:
    """G9: a user that hangs holds a fork up for a second, not more."""
    one = Undisturbed()
    one.__enter__()
    fork = started(one.before_fork)
    wait_until(lambda: not fork.is_alive(), "the fork begins", 5)
    one.after_in_parent()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_begins_without_users() -> None:
    """G9: the parent's threads are not in the child, nor do they keep it from forking."""
    pid = os.fork()
    if pid == 0:
        with undisturbed():
            os._exit(0 if undisturbed()._users == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert undisturbed()._users == 0
