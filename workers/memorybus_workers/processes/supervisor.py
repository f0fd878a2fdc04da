"""Worker processes as one: started, started again when one dies, ended together.

Each is a full worker with its own share of the lanes; Python runs one thread at a time. They lead
sessions of their own, so that Ctrl-C reaches only us, and end in order by themselves if we die. A
provider that ends its process gets one of its own (`posts.py`).
"""

import logging
import signal
import threading
from collections.abc import Callable, Mapping, Sequence

from memorybus import logs
from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.backoff import restart_delay
from memorybus.config.settings import Settings
from memorybus.errors import HOPELESS, ConfigError, MemoryBusError
from memorybus.ids import new_mark
from memorybus.registry.reclaim import reclaim_lanes
from memorybus.registry.roster import worker_id

from memorybus_workers.processes.parent import when_parent_ends
from memorybus_workers.processes.posts import command, posts, set_apart
from memorybus_workers.processes.process import FAILED, Ending, say
from memorybus_workers.processes.supervised import WorkerProcess

_log = logging.getLogger("memorybus")

MISCONFIGURED = 2
RESERVE = 2.0
"""Seconds after the workers' own `grace` in which we end them by force."""

_LOOK = 0.2
_AT_ONCE = 0.5
_ENDED_WELL = (0, -signal.SIGTERM)
"""Exit codes after we told a worker to end; the second if it had not begun to listen."""


Commands = Callable[[frozenset[str]], Mapping[str, Sequence[str]]]
"""The command line of each place, by its name, when some providers are apart."""


def verdict(code: int, error: MemoryBusError | None) -> MemoryBusError | None:
    """Return why a worker's end ends them all; None if another may take its place (pure)."""
    if error is None and code == MISCONFIGURED:
        return ConfigError("a worker process ended with exit code 2; it said why above")
    return error if isinstance(error, HOPELESS) else None


class Seat:
    """The place of one worker: the process in it, or when the next one takes it.

    Attributes:
        process: who serves it, or is about to.
        leaving: those that served something else, and go when `process` is ready.
    """

    def __init__(
        self, name: str, words: Sequence[str], settings: Settings, clock: Clock, mark: str
    ) -> None:
        """Leave it empty; the first `watch` fills it."""
        self.process: WorkerProcess | None = None
        self.leaving: list[WorkerProcess] = []
        self._name = name
        self._words = words
        self._settings = settings
        self._clock = clock
        self._mark = mark
        self._delay = 0.0
        self._free_until = float("-inf")

    @property
    def worker(self) -> str:
        """The id of a worker that is ready; empty if there is none."""
        return self.process.worker if self.process else ""

    def serve(self, words: Sequence[str]) -> None:
        """Have another process take over, with this command line, if it is not the present one.

        Who is there works until the next one is ready, so that no lane waits.
        """
        if words == self._words:
            return
        self._words = words
        if self.process is not None:
            self.leaving.append(self.process)
        self.process = None
        self._delay, self._free_until = 0.0, float("-inf")

    def watch(self) -> set[str]:
        """Take in what became of the process, and start the next one when it is time.

        The dead one's lanes are freed first: others serve them before the next one could (G9).

        Returns:
            The providers that have shown that they end their processes.

        Raises:
            MemoryBusError: it ended of something that the next one would end of, too.
        """
        shown: set[str] = set()
        if self.process is not None:
            code = self.process.listen()
            shown |= self.process.apart
            if code is not None:
                ended, self.process = self.process, None
                ended.close()
                if (reason := verdict(code, ended.error)) is not None:
                    raise reason  # it gave up what it had: there is nothing to bury
                shown |= self._buried(ended)
                self._note_end(ended, code)
        if self.process is None and self._clock.monotonic() >= self._free_until:
            self._fill()
        self._see_off()
        return shown

    def _buried(self, ended: WorkerProcess) -> set[str]:
        return reclaim_lanes(self._settings, worker_id(ended.pid, self._mark))

    def _see_off(self) -> None:
        """Tell those to end that are replaced now; each is seen to its end, by force if need be."""
        for process in self.leaving[:]:
            code = process.listen()
            if code is not None:
                self.leaving.remove(process)
                process.close()
                if code:  # it has not given up its lanes in good order
                    self._buried(process)
            elif self.worker:
                process.leave(self._settings.grace + RESERVE)

    def _fill(self) -> None:
        now = self._clock.monotonic()
        try:
            self.process = WorkerProcess(self._words, self._settings, now)
        except OSError as error:
            self._free_for(0.0, f"cannot be started: {error}")

    def _note_end(self, ended: WorkerProcess, code: int) -> None:
        said = f": {ended.error}" if ended.error else ""
        lived = self._clock.monotonic() - ended.born_at
        self._free_for(lived, f"ended (exit code {code}){said}")

    def _free_for(self, lived: float, what: str) -> None:
        self._delay = restart_delay(lived, self._delay)
        self._free_until = self._clock.monotonic() + self._delay
        _log.warning("%s %s; another starts in %g s", self._name, what, self._delay)


class Supervisor:
    """Keeps worker processes.

    Args:
        settings: handed on to each through the environment.
        providers: those of all of them, in the order of recall.
        commands: the command lines.
        mark: how they are told to let their ids end.
        clock: time.
    """

    def __init__(
        self,
        settings: Settings,
        providers: Sequence[str],
        commands: Commands,
        mark: str,
        clock: Clock = SYSTEM,
    ) -> None:
        """Start nothing yet."""
        self._settings = settings
        self._providers = providers
        self._commands = commands
        self._mark = mark
        self._clock = clock
        self._stop = threading.Event()
        self._apart: frozenset[str] = frozenset()
        self._seats: dict[str, Seat] = {}
        self._arrange()

    def run(self) -> int:
        """Keep them until `stop`; say once that all are ready; return the exit code.

        Raises:
            MemoryBusError: one cannot run, nor could another; all have been ended.
        """
        ready = False
        try:
            while not self._stop.is_set():
                self._set_apart({one for seat in self._seats.values() for one in seat.watch()})
                ready = ready or self._said_ready()
                self._stop.wait(_LOOK)
        finally:
            codes = self._end()
        return 0 if all(code in _ENDED_WELL for code in codes) else FAILED

    def stop(self) -> None:
        """Ask for the end: each worker finishes its batch, commits and gives its lanes up."""
        self._stop.set()

    def end_at_once(self) -> None:
        """Pass a second word on, and end by force who does not hear it."""
        running = self._running()
        for process in running:
            process.tell_again()
        for process in running:
            process.ended(_AT_ONCE)

    def _set_apart(self, shown: set[str]) -> None:
        before, self._apart = self._apart, set_apart(self._providers, self._apart, shown)
        for name in sorted(self._apart - before):
            _log.warning(
                "provider %s has a worker process of its own from now on, so that it ends no "
                "others' work: its calls hang, or ended a worker; mend its backend",
                name,
            )
        if self._apart != before:
            self._arrange()

    def _arrange(self) -> None:
        for name, words in self._commands(self._apart).items():
            if name in self._seats:
                self._seats[name].serve(words)
            else:
                self._seats[name] = Seat(name, words, self._settings, self._clock, self._mark)

    def _said_ready(self) -> bool:
        workers = [seat.worker for seat in self._seats.values()]
        if not all(workers):
            return False
        say({"ready": True, "worker": workers[0], "workers": workers})
        return True

    def _running(self) -> list[WorkerProcess]:
        seats = self._seats.values()
        return [one for seat in seats for one in (seat.process, *seat.leaving) if one is not None]

    def _end(self) -> list[int]:
        running = self._running()
        for process in running:
            process.tell()
        return [process.ended(self._settings.grace + RESERVE) for process in running]


def run_supervisor(
    settings: Settings,
    providers: Sequence[str],
    processes: int,
    jobs: int,
    log: logs.Form = "text",
    *,
    with_parent: bool = False,
    mark: str = "",
) -> int:
    """Run workers until told to end; return the exit code, 1 if one did not end in order.

    Args:
        settings: see `Settings`; `capacity` and `concurrency` are each process's.
        providers: the instances that they serve, in the order of recall.
        processes: how many share them.
        jobs: recall processes for each provider, in all.
        log: the form of their logs.
        with_parent: end when the process that started this one does.
        mark: how its workers' ids end; a fresh one if empty.

    Raises:
        MemoryBusError: see `Supervisor.run`.
    """
    mark = mark or new_mark()

    def commands(apart: frozenset[str]) -> dict[str, list[str]]:
        there = posts(providers, apart, processes, jobs)
        return {post.name: command(post, providers, log, mark) for post in there}

    supervisor = Supervisor(settings, providers, commands, mark)
    ending = Ending(settings, supervisor.stop, supervisor.end_at_once, reserve=RESERVE)
    ending.install()
    if with_parent:
        when_parent_ends(ending.orphaned)
    return supervisor.run()
