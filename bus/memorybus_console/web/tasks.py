"""Tasks: tasks that take longer than a request. Each runs on a thread; pages show its progress.

When the server ends its tasks end, too. One that changes something may be interrupted anywhere,
as if its command had been killed; the same act then resumes it.
"""

import logging
import threading
from collections.abc import Callable

import msgspec
from memorybus.clock import Clock
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.text.redact import masked

Tell = Callable[[str, int, int], None]
"""Receives the step, how many positions are done, and how many there are; 0 if unknown."""

_MAX_TASKS = 20  # how many tasks are remembered

_log = logging.getLogger("memorybus")


class PageTask(msgspec.Struct, frozen=True):
    """One task."""

    what: str  # what it does: "rebuild"
    provider: str
    by: str
    begun_at: int  # when it was started (wall time, milliseconds)
    step: str = ""
    done: int = 0  # how many positions of the history it has passed
    total: int = 0  # how many positions there are; 0 if that is unknown
    result: str = ""  # its result; "" while it runs
    failed: str = ""  # why it failed; "" if it did not

    @property
    def is_running(self) -> bool:
        """Whether it has neither a result nor an error yet."""
        return not self.result and not self.failed


class PageTasks:
    """Runs tasks, one at a time for each provider; any thread may call it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tasks: list[PageTask] = []

    def all(self) -> list[PageTask]:
        """Return the running tasks and the last finished ones, the newest first."""
        with self._lock:
            return self._tasks[::-1]

    def begin(self, what: str, provider: str, by: str, work: Callable[[Tell], str]) -> None:
        """Begin a task.

        Args:
            work: does the work and returns its result. It raises `MemoryBusError` if it fails.
        """
        task = PageTask(what, provider, by, self._clock.now_ms())
        with self._lock:
            if any(task.is_running and task.provider == provider for task in self._tasks):
                raise ConfigError(f"work is done on {provider} already; see its history page")
            self._tasks = [*self._tasks, task][-_MAX_TASKS:]
        place = (provider, task.begun_at)
        threading.Thread(
            target=self._run, args=(place, work), name=f"{what} of {provider}", daemon=True
        ).start()

    def _run(self, place: tuple[str, int], work: Callable[[Tell], str]) -> None:
        def tell(step: str, done: int, total: int) -> None:
            self._change(place, step=step, done=done, total=total)

        try:
            self._change(place, result=work(tell))
        except (MemoryBusError, OSError) as error:
            self._change(place, failed=masked(str(error)))
        except BaseException:
            self._change(place, failed="an error in memorybus: see the page's log")
            _log.exception("a task failed")

    def _change(self, place: tuple[str, int], **changes: str | int) -> None:
        with self._lock:
            self._tasks = [
                msgspec.structs.replace(task, **changes)
                if (task.provider, task.begun_at) == place
                else task
                for task in self._tasks
            ]
