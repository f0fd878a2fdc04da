"""Errors in hooks: counted, logged once per kind, and written to a file that `status` shows.

Hermes swallows most exceptions of a memory provider. So hooks raise nothing, and their errors are
shown by `status`.
"""

import logging
import threading
from pathlib import Path

import msgspec
from memorybus import Settings, private
from memorybus.clock import Clock
from memorybus.msgspec_types import prepared
from memorybus.text.display import visible
from memorybus.text.redact import masked

_log = logging.getLogger("memorybus")

_MAX_CHARS = 300
_MIN_WRITE_SECONDS = 1.0  # the least number of seconds between two writes of the file


class Problem(msgspec.Struct, frozen=True):
    """The last error of one kind.

    Attributes:
        error: the error as one line that is safe for a terminal.
        count: how often it happened in the process that wrote this.
        at: when it last happened, milliseconds.
    """

    hook: str
    error: str
    count: int
    at: int


class Problems:
    """The hook errors of one process. Safe to call from any thread.

    Args:
        path: the file that shows them to other processes; the last writer replaces it.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._written = float("-inf")
        self._problems: dict[tuple[str, str], Problem] = {}

    def note(self, hook: str, error: Exception) -> None:
        """Count an error, and log it if it is the first of its kind."""
        kind = (hook, type(error).__name__)
        shown = " ".join(visible(masked(f"{kind[1]}: {error}")).split())[:_MAX_CHARS]
        with self._lock:
            before = self._problems.get(kind)
            count = before.count + 1 if before else 1
            self._problems[kind] = Problem(hook, shown, count, self._clock.now_ms())
            if before is None:
                _log.error("memorybus: %s failed: %s (logged once, then counted)", hook, shown)
            self._write(first=before is None)

    @property
    def count(self) -> int:
        with self._lock:
            return sum(problem.count for problem in self._problems.values())

    def _write(self, *, first: bool) -> None:
        now = self._clock.monotonic()
        if not first and now - self._written < _MIN_WRITE_SECONDS:
            return
        self._written = now
        try:
            private.directory(self._path.parent)
            new = self._path.with_suffix(".new")
            private.write(new, msgspec.json.encode(list(self._problems.values())))
            new.replace(self._path)
        except OSError as error:
            _log.debug("%s: %s", self._path, error)


def problems_path(settings: Settings) -> Path:
    """Return the file that shows the hook errors of this log's agents."""
    return settings.data_dir / "hermes" / f"{settings.log_name}.errors.json"


def read(settings: Settings) -> list[Problem]:
    """Return the hook errors that an agent of this host wrote last, newest first."""
    try:
        problems = msgspec.json.decode(
            problems_path(settings).read_bytes(), type=prepared(list[Problem])
        )
    except (OSError, msgspec.MsgspecError):
        return []
    return sorted(problems, key=lambda problem: -problem.at)
