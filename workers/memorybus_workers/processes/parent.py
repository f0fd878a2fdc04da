"""How a process notices that the process which started it has ended."""

import os
import sys
import threading
from collections.abc import Callable


def call_when_parent_ends(tell: Callable[[], None]) -> None:
    """Call `tell` once, from a thread, when our standard input ends.

    The other end of that pipe is held by the process that started us, and closed by the kernel
    however it dies.
    """
    threading.Thread(target=_await_end, args=(tell,), name="memorybus-parent", daemon=True).start()


def _await_end(tell: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    tell()
