"""Runs a worker as a process: its ready line, its signals, its exit code and its end."""

import contextlib
import ctypes
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.wakeup import Wake
from memorybus.config.settings import Settings
from memorybus.processes.light_imports import freeze_heap, load_redis

from memorybus_workers.processes.exporting import export_spans

_log = logging.getLogger("memorybus")
FAILED: Final = 1
MISCONFIGURED: Final = 2  # another start would fail in the same way, so a supervisor ends


def _report_given_up(provider: str) -> None:
    print_json_line({"apart": provider})


def _report_ready(name: str) -> None:
    freeze_heap()
    print_json_line({"ready": True, "worker": name})


def run_worker(
    settings: Settings,
    providers: Sequence[str],
    jobs: int,
    *,
    with_parent: bool = False,
    mark: str = "",
    only: str = "",
    among: Sequence[str] = (),
) -> int:
    """Run a worker until it is told to end; return the exit code, 1 if it had to give up."""
    # Imported late: a supervisor does not need it, and starts faster without it.
    load_redis()
    from memorybus_workers.processes.worker import Worker

    give_up = _report_given_up if with_parent else None
    worker = Worker(settings, providers, jobs, mark=mark, only=only, among=among, give_up=give_up)
    ending = OrderlyEnd(settings, worker.stop)
    ending.install()
    if with_parent:
        call_when_parent_ends(ending.request_as_orphan)
    with export_spans():
        worker.run(_report_ready)
    return FAILED if worker.failed else 0


def print_json_line(line: dict[str, Any]) -> None:
    """Print one JSON line on stdout; it is no error if the reader has gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(line) + b"\n")


def call_when_parent_ends(tell: Callable[[], None]) -> None:
    """Call `tell` once, from a thread, when our standard input ends."""
    threading.Thread(target=_await_end, args=(tell,), name="memorybus-parent", daemon=True).start()


def _await_end(tell: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    tell()


_LAST_WORDS = 1.0
_LEASES = (
    "leases expire by themselves within %g s, and their next owners continue from the last commits"
)


class OrderlyEnd:
    """Ends this process in order at the first request, and at once at the second or after `grace`.

    A separate thread acts, so that no hanging call delays the end. `reserve` adds seconds, for a
    process that waits for others with the same `grace`.
    """

    def __init__(
        self,
        settings: Settings,
        stop: Callable[[], None],
        at_once: Callable[[], None] = lambda: None,
        *,
        reserve: float = 0.0,
        clock: Clock = SYSTEM,
        leave: Callable[[int], Any] = os._exit,
    ) -> None:
        self._settings = settings
        self._stop = stop
        self._at_once = at_once
        self._reserve = reserve
        self._clock = clock
        self._leave = leave
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._requested = Wake()
        threading.Thread(target=self._run, name="memorybus-ending", daemon=True).start()

    def install(self) -> None:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self.request())

    def request(self) -> None:
        """Request the end; the second request ends the process at once."""
        self._requests.put(True)
        self._requested.set()

    def request_as_orphan(self) -> None:
        """Request an orderly end, however often this is called: the parent process has gone."""
        self._requests.put(False)
        self._requested.set()

    def _run(self) -> None:
        self._requests.get()
        _log.info(
            "shutting down: up to %g s to finish running work; a second signal stops it at once",
            self._settings.grace,
        )
        self._stop()
        # Log the reason before ending anything: the main thread may leave before this one does.
        last_words = threading.Thread(
            target=self._log_reason, args=(self._wait_for_reason(),), daemon=True
        )
        last_words.start()
        last_words.join(_LAST_WORDS)  # do not wait for ever: perhaps nobody reads our log any more
        self._at_once()
        self._leave(FAILED)

    def _wait_for_reason(self) -> str:
        """Wait for the second request, or for the end of the time; return which it was."""
        deadline = self._clock.monotonic() + self._settings.grace + self._reserve
        while (left := deadline - self._clock.monotonic()) > 0:
            self._requested.wait(left)
            while not self._requests.empty():
                if self._requests.get():
                    return "second signal"
        return f"not ended within {self._settings.grace:g} s"

    def _log_reason(self, why: str) -> None:
        _log.warning("%s: ending at once; " + _LEASES, why, self._settings.lease)


_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
_MMAP_THRESHOLD_BYTES = 128 << 10
"""Larger blocks get their own mapping; glibc begins with this value, but would raise it."""


def share_one_heap() -> bool:
    """Let all threads share one heap, and map large blocks apart; call it before threads start.

    By default glibc gives each thread a heap with holes of its own (mallopt(3)). Sharing costs
    nothing here: a thread allocates while it holds the interpreter's lock.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return bool(mallopt(_ARENA_MAX, 1)) and bool(mallopt(_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))
