"""Observes what a call leaves behind: threads, their errors, and failures in the plugin's log.

Hermes plugins work in their own threads and report failures only in the log. So an event counts as
applied only if these threads have ended or are idle, and no failure was logged.
"""

import contextlib
import logging
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from .failures import TRANSIENT, CallRefused
from .resting import is_idle

_MAX_LINES = 5
_POLL_SECONDS = 0.02
_REPORT_AFTER_SECONDS = 2.0
_FAILURE = re.compile(
    r"(?i)\b(fail|error|drop|lost|refus|unable|could not|cannot|timed out|timeout)"
)


class WatchedCall:
    """One call into a plugin.

    Args:
        hook: the hook that is called.
        event: the id of the event that it applies; "" if it applies none.
        writes: whether failures during the call are attributed to it.

    Attributes:
        threads: the threads that the call or its threads started, and idle ones of earlier calls.
        failures: the failures that were raised or logged.
    """

    def __init__(self, hook: str = "", event: str = "", *, writes: bool) -> None:
        """Begin without threads and failures."""
        self.hook = hook
        self.event = event
        self.writes = writes
        self.threads: list[threading.Thread] = []
        self.failures: list[BaseException] = []

    def join(self, seconds: float | None = None) -> bool:
        """Wait until all threads have ended or are idle; return whether they have.

        There is no limit if `seconds` is None. If this takes long, a thread is printed, once.
        """
        begun = time.monotonic()
        told = False
        while working := self._working():
            waited = time.monotonic() - begun
            if seconds is not None and waited >= seconds:
                return False
            if waited >= _REPORT_AFTER_SECONDS and not told:
                sys.stderr.write(f"WARNING {self.hook} waits for the thread {working[0].name}\n")
                told = True
            working[0].join(_POLL_SECONDS)
        return True

    def _working(self) -> list[threading.Thread]:
        """Return the threads that work; check twice, since one may have given work to another."""
        found = [thread for thread in self.threads if not is_idle(thread)]
        return found or [thread for thread in self.threads if not is_idle(thread)]

    def raise_failure(self) -> None:
        """Raise the first failure that was seen."""
        if self.failures:
            raise self.failures[0]


class Watch(logging.Handler):
    """Observes the threads and log records of this process, which has only one watch.

    Args:
        directory: the plugin's directory; only log records from its files may report failures.
        failure_prefixes: beginnings of messages below WARNING that report a failure, too.
    """

    def __init__(self, directory: Path, failure_prefixes: tuple[str, ...]) -> None:
        """Prepare; `install` begins to observe."""
        super().__init__(logging.DEBUG)
        self._directory = f"{directory}/"
        self._failure_prefixes = failure_prefixes
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
    def idle_threads(self) -> int:
        """How many threads of earlier calls are idle."""
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
                self._standing = [one for one in call.threads if one.is_alive() and is_idle(one)]

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a failure that the plugin logs for the call that writes; print warnings."""
        message = f"{record.name}: {record.getMessage()}"
        if record.levelno >= logging.WARNING:
            sys.stderr.write(f"{record.levelname} {message}\n")
        if record.name.startswith("plugins.memory") or self._is_plugins(record):
            self.last.append(message)
        if self._reports_failure(record):
            self._note_failure(_cause(record) or CallRefused(TRANSIENT, message))

    def _reports_failure(self, record: logging.LogRecord) -> bool:
        """Say whether a record reports a failure.

        A warning may also be advice, for which an event must not be applied again.
        """
        known = str(record.msg).startswith(self._failure_prefixes or ("\0",))
        return self._is_plugins(record) and (known or _tells_of_failure(record))

    def _is_plugins(self, record: logging.LogRecord) -> bool:
        return record.pathname.startswith(self._directory)

    def _thread_raised(self, args: Any) -> None:
        name = args.thread.name if args.thread else "a thread"
        sys.stderr.write(f"ERROR {name} ended: {args.exc_type.__name__}: {args.exc_value}\n")
        self._note_failure(args.exc_value or args.exc_type())

    def _note_failure(self, error: BaseException) -> None:
        """Attribute an error to the call that writes, unless this thread belongs to a recall."""
        own = self._calls.get(threading.current_thread())
        if own is not None and not own.writes:
            return
        if self._writing is not None:
            self._writing.failures.append(error)


def _tells_of_failure(record: logging.LogRecord) -> bool:
    if record.levelno < logging.WARNING:
        return False
    worded = _FAILURE.search(str(record.msg)) is not None
    return record.levelno >= logging.ERROR or worded or _cause(record) is not None


def _cause(record: logging.LogRecord) -> BaseException | None:
    """Return the exception of a log record, or one among its arguments."""
    if record.exc_info and record.exc_info[1] is not None:
        return record.exc_info[1]
    args = record.args if isinstance(record.args, tuple) else ()
    return next((one for one in args if isinstance(one, BaseException)), None)
