"""Finds out whether a thread is idle: it has ended, or waits for work and has none.

Plugins keep threads that never end: a writer that reads a queue, or threads of an executor or an
event loop. The work of a call is done when they wait for more. A thread that waits in any other way
(for example in a loop with pauses) cannot be judged, and counts as working.
"""

import asyncio
import concurrent.futures.thread
import queue
import sys
import threading
from types import FrameType


def is_idle(thread: threading.Thread) -> bool:
    """Return whether a thread has ended, or waits for work and has none."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  there is no other way
    if frame is None:
        return not thread.is_alive()
    return _at_queue(frame) or _in_executor(frame) or _in_loop(frame)


def _at_queue(frame: FrameType) -> bool:
    """Return whether a thread waits in `Queue.get` for an empty queue."""
    outer = frame.f_back
    if outer is None or outer.f_code is not queue.Queue.get.__code__:
        return False
    waits = frame.f_code is threading.Condition.wait.__code__
    return waits and bool(outer.f_locals["self"].empty())


def _in_executor(frame: FrameType) -> bool:
    """Return whether a thread belongs to an executor and has no work."""
    if frame.f_code is not concurrent.futures.thread._worker.__code__:  # noqa: SLF001
        return False
    return "work_item" not in frame.f_locals and bool(frame.f_locals["work_queue"].empty())


def _in_loop(frame: FrameType) -> bool:
    """Return whether a thread runs an event loop that has no task and waits for events."""
    outer = frame.f_back
    if outer is None or outer.f_code is not asyncio.BaseEventLoop._run_once.__code__:  # type: ignore[attr-defined]  # noqa: SLF001
        return False
    loop = outer.f_locals["self"]
    waits = frame.f_code.co_name == "select"
    return waits and not loop._ready and not asyncio.all_tasks(loop)  # noqa: SLF001
