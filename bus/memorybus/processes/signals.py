"""Lets Ctrl-C and SIGTERM unwind the stack, but never in the middle of a start or a stop."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import NoReturn

STOPPING = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
_REDELIVERY_SECONDS = 0.01
"""Seconds after which a lost signal is delivered again: by then the finalizer has ended."""


def end_on_stop() -> None:
    """Let SIGINT end this process at once and silently, as SIGTERM does, until `unwind_on_stop`.

    This is for the time in which modules are loaded: there is nothing to unwind, and Python would
    print a traceback of the import that was interrupted.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def unwind_on_stop() -> None:
    """Let SIGINT and SIGTERM end this process by an exception, so that every ``finally`` runs.

    SIGINT is set, too, because a shell script starts its background jobs with SIGINT ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(TERMINATED)


@contextmanager
def lost_stops_repeated() -> Iterator[None]:
    """Deliver Ctrl-C and SIGTERM again if they arrive while a finalizer runs.

    Python only prints an error that is raised in a ``__del__``, so such a signal would end nothing.
    An alarm repeats it a moment later; if it were raised at once, that would be in the finalizer,
    too.
    """
    report = sys.unraisablehook
    lost: list[signal.Signals] = []

    def repeat_or_report(what: "sys.UnraisableHookArgs") -> None:
        stop = _stop_behind(what.exc_value)
        if stop is not None:
            lost.append(stop)
            signal.signal(signal.SIGALRM, repeat)
            signal.setitimer(signal.ITIMER_REAL, _REDELIVERY_SECONDS)
        else:
            report(what)

    def repeat(number: int, frame: FrameType | None) -> None:
        if _runs(repeat_or_report.__code__, frame):  # the machine is slow: it would be lost again
            signal.setitimer(signal.ITIMER_REAL, _REDELIVERY_SECONDS)
        else:
            signal.raise_signal(lost[-1])

    sys.unraisablehook = repeat_or_report
    try:
        yield
    finally:
        if lost:
            signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = report


def _stop_behind(error: BaseException | None) -> signal.Signals | None:
    """Return the signal that was raised as this error; None for any other error or exit."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    if isinstance(error, SystemExit) and error.code == TERMINATED:
        return signal.SIGTERM
    return None


def _runs(code: CodeType, frame: FrameType | None) -> bool:
    """Return whether a frame runs a function's code, or was called by one that does."""
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def hurried_exit_code(end: BaseException) -> int:
    """Return the exit code for an end that was requested twice; 0 if it was requested once."""
    before = end.__context__
    while before is not None and not isinstance(before, KeyboardInterrupt | SystemExit):
        before = before.__context__
    if before is None:
        return 0
    return INTERRUPTED if isinstance(end, KeyboardInterrupt) else TERMINATED


@contextmanager
def deferred(hurry: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the block is done, then deliver the first of them.

    Unlike a blocked signal mask, this is not inherited by processes started inside. Only the main
    thread gets signals, so on another thread there is nothing to hold back.

    Args:
        hurry: called for each signal; may make the block end sooner.
    """
    pending: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        pending.append(number)
        hurry()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, remember) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])
