"""A forked child that does a piece of a test."""

import os
from collections.abc import Callable


def in_child(work: Callable[[], None]) -> None:
    """Run something in a forked child; fail if it does."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:  # the child must not go on as a second test run
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
