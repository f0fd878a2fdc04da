"""Restarts one worker of a supervisor when it dies, and replaces it when its work changes."""

import logging
from collections.abc import Sequence
from functools import partial

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import NEEDS_A_PERSON, ConfigError, MemoryBusError
from memorybus.processes.child import ChildProcess, start_child
from memorybus.processes.keeper import Death, Keeper

from memorybus_workers.processes.process import MISCONFIGURED

_log = logging.getLogger("memorybus")
KILL_RESERVE_SECONDS = 2.0  # seconds after the workers' own `grace` at which they are killed


def fatal_error(code: int, why: Exception | None) -> MemoryBusError | None:
    """Return why one worker's end must end all workers; None if it can be restarted; pure."""
    if why is None and code == MISCONFIGURED:
        return ConfigError("a worker process ended with exit code 2; it said why above")
    return why if isinstance(why, NEEDS_A_PERSON) else None


class SupervisedWorker:
    """One worker as its supervisor sees it: its process, and the processes that it replaces."""

    def __init__(
        self, name: str, words: Sequence[str], settings: Settings, clock: Clock, mark: str
    ) -> None:
        self.worker = ""  # the id of the worker, if it is ready; empty otherwise
        # processes that served other providers, and end when the new one is ready
        self.leaving: list[ChildProcess] = []
        self._name = name
        self._words = words
        self._settings = settings
        self._clock = clock
        self._mark = mark
        self._keeper = Keeper(partial(start_child, words, settings), clock)
        self._asked_to_end: dict[int, float] = {}

    @property
    def processes(self) -> list[ChildProcess]:
        present = self._keeper.child
        return [*self.leaving] if present is None else [present, *self.leaving]

    @property
    def settled(self) -> bool:
        return bool(self._keeper.child) and not self.leaving

    def serve(self, words: Sequence[str]) -> None:
        """Let another process with this command line take over, unless it is the present one's."""
        if words == self._words:
            return
        self._words = words
        present = self._keeper.replace(partial(start_child, words, self._settings))
        if present is not None:
            self.leaving.append(present)
        self.worker = ""

    def watch(self) -> set[str]:
        """Restart the process when it has ended; return the providers whose calls ended it.

        The lanes of a dead process are freed first (G9). An error that would end the next one is
        raised.
        """
        death = self._keeper.poll()
        dangerous = self._read_reports(death.child if death else self._keeper.child)
        if death is not None:
            dangerous |= self._clear_up(death)
        self._end_replaced()
        return dangerous

    def _read_reports(self, process: ChildProcess | None) -> set[str]:
        given_up: set[str] = set()
        for report in process.reports() if process else ():
            self.worker = str(report.get("worker") or self.worker)
            if "apart" in report:
                given_up.add(str(report["apart"]))
        return given_up

    def _clear_up(self, death: Death) -> set[str]:
        self.worker = ""
        reason = fatal_error(death.code, death.why)
        if reason is not None:
            raise reason  # it released its lanes itself
        dangerous = self._reclaim_lanes(death.child) if death.child else set()
        _log.warning("%s %s; another starts in %g s", self._name, death, death.delay)
        return dangerous

    def _reclaim_lanes(self, ended: ChildProcess) -> set[str]:
        # Imported late: the Redis client would be most of a supervisor's memory.
        from memorybus.registry.reclaim import reclaim_lanes
        from memorybus.registry.roster import worker_id

        return reclaim_lanes(self._settings, worker_id(ended.pid, self._mark))

    def _end_replaced(self) -> None:
        for process in self.leaving[:]:
            code = process.listen()
            if code is not None:
                self.leaving.remove(process)
                process.close()
                if code:  # it has not released its lanes
                    self._reclaim_lanes(process)
            elif self.worker:
                self._press_to_end(process)

    def _press_to_end(self, process: ChildProcess) -> None:
        now = self._clock.monotonic()
        if process.pid not in self._asked_to_end:
            self._asked_to_end[process.pid] = now
            process.terminate()
        elif now > self._asked_to_end[process.pid] + self._settings.grace + KILL_RESERVE_SECONDS:
            process.kill()
