"""A forked child that does a piece of a test."""

import faulthandler
import gc
import os
import threading
from collections.abc import Callable

from memorybus_providers.embedding import backfill

from helpers.processes.waiting import wait_until

_HANG_SECONDS = 60.0
"""Seconds after which a child shows where its threads are, and fails: half of a test's time."""


def in_child(work: Callable[[], None]) -> None:
    """Run something in a forked child; fail if it does.

    A thread of an earlier test that is inside SQLite at the fork, or that collects an earlier
    test's connections there, would leave SQLite's locks taken for ever in the child. So such
    threads and such garbage are gone first. Our own threads are held back by `sqlite_guard`.
    """
    await_no_filler()
    gc.collect()
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True, file=2)
        try:
            work()
        except BaseException as error:  # the child must not go on as a second test run
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def await_no_filler() -> None:
    """Wait until no thread fills in vectors any more: one may outlive its test for a second."""

    def gone() -> bool:
        return all(thread.name != backfill.THREAD for thread in threading.enumerate())

    wait_until(gone, "no backfill runs")
