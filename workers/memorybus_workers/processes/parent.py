"""Notices that the process which started this one has ended."""

import os
import sys
import threading
from collections.abc import Callable


def call_when_parent_ends(tell: Callable[[], None]) -> None:
    """Call `tell` once, from a thread, when our standard input ends.

    The process that started us has the other end of that pipe, and the kernel closes it however
    that process dies.
    """
    threading.Thread(target=_await_end, args=(tell,), name="memorybus-parent", daemon=True).start()


def _await_end(tell: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    tell()
