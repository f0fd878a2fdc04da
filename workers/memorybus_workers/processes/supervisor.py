"""Runs several worker processes as one: starts, restarts and ends them together."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.ids import new_mark
from memorybus.processes.child import ChildProcess, wait_for_any
from memorybus.processes.commands import module_command

from memorybus_workers.processes.process import (
    FAILED,
    OrderlyEnd,
    call_when_parent_ends,
    print_json_line,
)
from memorybus_workers.processes.service import Liveness, ServiceManager
from memorybus_workers.processes.supervised_worker import KILL_RESERVE_SECONDS, SupervisedWorker

_log = logging.getLogger("memorybus")
_POLL_SECONDS = 1.0  # seconds between looks at workers that run and report nothing
_CHANGING_POLL_SECONDS = 0.1  # seconds between looks while a worker is about to start or to leave
_KILL_SECONDS = 0.5
_ENDED_WELL = (0, -signal.SIGTERM)
"""Good exit codes of a worker that was told to end; the second, if it had no handler yet."""


Commands = Callable[[frozenset[str]], Mapping[str, Sequence[str]]]
"""Returns the command line of each worker process by its name, given the separated providers."""


class Supervisor:
    """Keeps the worker processes running."""

    def __init__(
        self,
        settings: Settings,
        providers: Sequence[str],
        commands: Commands,
        mark: str,
        clock: Clock = SYSTEM,
    ) -> None:
        self._settings = settings
        self._providers = providers
        self._commands = commands
        self._mark = mark
        self._clock = clock
        self._stop = threading.Event()
        self._wakes, self._wake = os.pipe()
        self._separated: frozenset[str] = frozenset()
        self._workers: dict[str, SupervisedWorker] = {}
        self._arrange()
        # further fields of the line which says that all workers are ready
        self.ready: dict[str, str] = {}
        self.liveness = Liveness(clock)
        self._listeners = (ServiceManager.of_environment(clock), self.liveness)

    def run(self) -> int:
        """Run the workers until `stop`; report once that all are ready; return the exit code."""
        ready = False
        try:
            while not self._stop.is_set():
                self._separate_providers(
                    {name for worker in self._workers.values() for name in worker.watch()}
                )
                ready = ready or self._announce_if_ready()
                for listener in self._listeners:
                    listener.note_turn()
                self._rest()
        finally:
            for listener in self._listeners:
                listener.note_end()
            codes = self._end()
        return 0 if all(code in _ENDED_WELL for code in codes) else FAILED

    def _rest(self) -> None:
        """Wait until a worker reports something, ends or is due to start, or until `stop`."""
        settled = all(worker.settled for worker in self._workers.values())
        wait_for_any(
            self._running(),
            _POLL_SECONDS if settled else _CHANGING_POLL_SECONDS,
            also=(self._wakes,),
        )

    def stop(self) -> None:
        """Request the end: each worker finishes its batch, commits and releases its lanes."""
        self._stop.set()
        os.write(self._wake, b".")

    def end_at_once(self) -> None:
        """Pass the second signal on, and kill the processes that do not end."""
        running = self._running()
        for process in running:
            process.interrupt()
        for process in running:
            process.end(_KILL_SECONDS)

    def _separate_providers(self, dangerous: set[str]) -> None:
        before, self._separated = (
            self._separated,
            separate_providers(self._providers, self._separated, dangerous),
        )
        for name in sorted(self._separated - before):
            _log.warning(
                "provider %s gets its own worker process from now on, so that it cannot end "
                "the work of others: its calls hang, or ended a worker; repair its backend",
                name,
            )
        if self._separated != before:
            self._arrange()

    def _arrange(self) -> None:
        for name, words in self._commands(self._separated).items():
            if name in self._workers:
                self._workers[name].serve(words)
            else:
                self._workers[name] = SupervisedWorker(
                    name, words, self._settings, self._clock, self._mark
                )

    def _announce_if_ready(self) -> bool:
        workers = [worker.worker for worker in self._workers.values()]
        if not all(workers):
            return False
        print_json_line({"ready": True, "worker": workers[0], "workers": workers} | self.ready)
        for listener in self._listeners:
            listener.note_ready()
        return True

    def _running(self) -> list[ChildProcess]:
        return [process for worker in self._workers.values() for process in worker.processes]

    def _end(self) -> list[int]:
        running = self._running()
        for process in running:
            process.terminate()
        return [process.end(self._settings.grace + KILL_RESERVE_SECONDS) for process in running]


def run_supervisor(
    settings: Settings,
    providers: Sequence[str],
    processes: int,
    jobs: int,
    *,
    with_parent: bool = False,
    mark: str = "",
    metrics: str = "",
) -> int:
    mark = mark or new_mark()

    def commands(separated: frozenset[str]) -> dict[str, list[str]]:
        there = plan_workers(providers, separated, processes, jobs)
        return {plan.name: worker_command(plan, providers, mark) for plan in there}

    supervisor = Supervisor(settings, providers, commands, mark)
    ending = OrderlyEnd(
        settings, supervisor.stop, supervisor.end_at_once, reserve=KILL_RESERVE_SECONDS
    )
    ending.install()
    if with_parent:
        call_when_parent_ends(ending.request_as_orphan)
    with _serving_metrics(settings, metrics, supervisor.liveness) as where:
        supervisor.ready = {"metrics": where} if where else {}
        return supervisor.run()


@contextmanager
def _serving_metrics(settings: Settings, metrics: str, liveness: Liveness) -> Iterator[str]:
    if not metrics:
        yield ""
        return
    from memorybus.health.metrics_server import parse_address, serve_metrics

    with serve_metrics(settings, parse_address(metrics), liveness) as where:
        yield str(where)


class WorkerPlan(msgspec.Struct, frozen=True):
    """What one worker process serves."""

    name: str  # a name for people; it stays the same when the process serves other instances
    serves: tuple[str, ...]  # the provider instances
    jobs: int  # how many recall processes each of them has


def spread_jobs(jobs: int, processes: int) -> list[int]:
    """Return how many recall processes each worker runs: `jobs` in all, spread evenly."""
    each, more = divmod(jobs, processes)
    return [each + (number < more) for number in range(processes)]


def plan_workers(
    providers: Sequence[str], separated: Collection[str], processes: int, jobs: int
) -> list[WorkerPlan]:
    """Return `processes` plans for the providers that share, and one for each separated one."""
    sharing = tuple(name for name in providers if name not in separated)
    shared = [
        WorkerPlan(f"worker process {number} of {processes}", sharing, share)
        for number, share in enumerate(spread_jobs(jobs, processes), 1)
    ]
    own = [
        WorkerPlan(f"the worker process of {name}", (name,), jobs)
        for name in providers
        if name in separated
    ]
    return shared + own


def separate_providers(
    providers: Sequence[str], separated: frozenset[str], dangerous: Collection[str]
) -> frozenset[str]:
    """Return the providers that have their own process from now on."""
    for name in sorted(set(dangerous) & set(providers) - separated):
        if len(set(providers) - separated) > 1:
            separated |= {name}
    return separated


def worker_command(plan: WorkerPlan, providers: Sequence[str], mark: str) -> list[str]:
    words = module_command("memorybus_workers", "worker", "--with-parent", "--mark", mark)
    served = ("--providers", ",".join(plan.serves), "--among", ",".join(providers))
    return [*words, *served, "--jobs", str(plan.jobs)]
