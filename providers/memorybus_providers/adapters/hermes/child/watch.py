"""Observes what a call leaves behind: threads, their errors, and failures in the plugin's log.

Hermes plugins work in their own threads and report failures only in the log. So an event counts as
applied only if these threads have ended or are idle, and no failure was logged. Nothing of a plugin
is read or changed for that.
"""

import asyncio
import concurrent.futures.thread
import contextlib
import logging
import math
import queue
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from .failures import TRANSIENT, CallRefused

_MAX_LINES = 5
_POLL_SECONDS = 0.02
_REPORT_AFTER_SECONDS = 2.0
_FAILED_WRITE = re.compile(
    r"(?i)(sync|write|mirror|ingest|flush|retain|store|save|upload)\w*\b.{0,40}\bfailed\b"
)
_FAILURE = re.compile(
    r"(?i)\b(fail|error|drop|lost|refus|unable|could not|cannot|timed out|timeout)"
)


class WatchedCall:
    """One call into a plugin.

    Args:
        hook: the hook that is called.
        event: the id of the event that it applies; "" if it applies none.
        writes: whether what threads of earlier calls do meanwhile belongs to it.

    Attributes:
        opening: the call that initialised the plugin's instance, whose threads work for it, too.
        threads: the threads that the call or its threads started, and those that earlier writes
            left.
    """

    def __init__(self, hook: str = "", event: str = "", *, writes: bool) -> None:
        self.hook = hook
        self.event = event
        self.writes = writes
        self.opening: WatchedCall | None = None
        self.thread = threading.get_ident()  # the id of the thread that calls
        self.threads: list[threading.Thread] = []
        self.failures: list[BaseException] = []  # the failures that its threads raised or logged

    def join(self, seconds: float = math.inf) -> None:
        """Wait until all threads have ended or are idle; if this takes long, print one, once.

        Without a limit the parent kills this process in the end, so that nothing is written late.
        """
        begun = time.monotonic()
        reported = False
        while (working := self._working()) and time.monotonic() - begun < seconds:
            if time.monotonic() - begun >= _REPORT_AFTER_SECONDS and not reported:
                sys.stderr.write(f"WARNING {self.hook} waits for the thread {working[0].name}\n")
                reported = True
            working[0].join(_POLL_SECONDS)

    def _working(self) -> list[threading.Thread]:
        """Return the threads that work; check twice, since one may have given work to another."""
        for _ in range(2):
            if working := [thread for thread in self.all_threads() if not is_idle(thread)]:
                return working
        return []

    def all_threads(self) -> list[threading.Thread]:
        """Return each thread that may work for the call once."""
        opened = self.opening.threads if self.opening else ()
        return list(dict.fromkeys((*self.threads, *opened)))

    def raise_failure(self) -> None:
        """Raise the first failure that was seen."""
        if self.failures:
            raise self.failures[0]


class Watch(logging.Handler):
    """Observes the threads and log records of this process, which has only one watch.

    Args:
        directory: the plugin's directory; only log records from its files may report failures.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(logging.DEBUG)
        self._directory = f"{directory}/"
        self._calls: WeakKeyDictionary[threading.Thread, WatchedCall] = WeakKeyDictionary()
        self._writing: WatchedCall | None = None
        self._standing: list[threading.Thread] = []
        self.last: deque[str] = deque(maxlen=_MAX_LINES)

    def install(self) -> None:
        """Observe every thread that starts or fails, and every log record."""
        start = threading.Thread.start

        def start_watched(thread: threading.Thread) -> None:
            call = self._calls.get(threading.current_thread())
            if call is not None and call.writes:
                call = self._writing or call  # an idle thread now works for the call that writes
            if call is not None:
                self._calls[thread] = call
            start(thread)
            if call is not None:
                call.threads.append(thread)

        threading.Thread.start = start_watched  # type: ignore[method-assign,assignment]
        threading.excepthook = self._thread_raised
        logging.getLogger().addHandler(self)

    @property
    def left_threads(self) -> int:
        """How many threads earlier calls have left."""
        return len(self._standing)

    @contextlib.contextmanager
    def call(self, hook: str = "", event: str = "", *, writes: bool) -> Iterator[WatchedCall]:
        """Watch this thread and those that it starts. Only one call may write at a time."""
        thread, call = threading.current_thread(), WatchedCall(hook, event, writes=writes)
        around = self._calls.get(thread)
        self._calls[thread] = call
        if writes:
            self._writing = call
            call.threads.extend(self._standing)
        try:
            yield call
        finally:
            self._calls.pop(thread)
            if around is not None:
                self._calls[thread] = around
            if writes:
                self._writing = None
                self._standing = [thread for thread in call.all_threads() if thread.is_alive()]

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a failure that the plugin logs for the call that it belongs to; print warnings."""
        message = f"{record.name}: {record.getMessage()}"
        if record.levelno >= logging.WARNING:
            sys.stderr.write(f"{record.levelname} {message}\n")
        if record.name.startswith("plugins.memory") or self._is_plugins(record):
            self.last.append(message)
        call = self._current_call()
        if call is not None and self._is_plugins(record) and _is_failure(record, call):
            call.failures.append(_cause(record) or CallRefused(TRANSIENT, message))

    def _is_plugins(self, record: logging.LogRecord) -> bool:
        return record.pathname.startswith(self._directory)

    def _thread_raised(self, args: Any) -> None:
        name = args.thread.name if args.thread else "a thread"
        sys.stderr.write(f"ERROR {name} ended: {args.exc_type.__name__}: {args.exc_value}\n")
        if (call := self._current_call()) is not None:
            call.failures.append(args.exc_value or args.exc_type())

    def _current_call(self) -> WatchedCall | None:
        """Return the call that this thread works for.

        A thread that `initialize` has begun works for the writes of its instance.
        """
        own, writing = self._calls.get(threading.current_thread()), self._writing
        if own is None or own.writes or (writing is not None and writing.opening is own):
            return writing
        return own


def _is_failure(record: logging.LogRecord, call: WatchedCall) -> bool:
    """Return whether a record reports that a call failed.

    Plugins log failed writes at DEBUG, too, with the exception; what else failed at that level does
    not matter. A warning may also be advice, for which an event must not be applied again; so of an
    initialisation only its threads report.
    """
    if not call.writes and record.thread == call.thread:
        return False
    if record.levelno < logging.WARNING:
        return call.writes and bool(_FAILED_WRITE.search(str(record.msg)) and _cause(record))
    worded = _FAILURE.search(str(record.msg)) is not None
    return record.levelno >= logging.ERROR or worded or _cause(record) is not None


def _cause(record: logging.LogRecord) -> BaseException | None:
    """Return the exception of a log record, or one among its arguments."""
    if record.exc_info and record.exc_info[1] is not None:
        return record.exc_info[1]
    args = record.args if isinstance(record.args, tuple) else ()
    return next((one for one in args if isinstance(one, BaseException)), None)


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
