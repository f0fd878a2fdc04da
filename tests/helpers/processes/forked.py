"""A forked child that does a piece of a test."""

import faulthandler
import os
from collections.abc import Callable

_HANGS = 60.0
"""Seconds after which a child shows where its threads are, and fails: half of a test's time."""


def in_child(work: Callable[[], None]) -> None:
    """Run something in a forked child; fail if it does."""
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(_HANGS, exit=True, file=2)
        try:
            work()
        except BaseException as error:  # the child must not go on as a second test run
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
