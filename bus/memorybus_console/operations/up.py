"""``memorybus up``: runs the embedded Redis and workers as one process tree that stops together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout
from memorybus import private
from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import NEEDS_A_PERSON, MemoryBusError
from memorybus.ids import new_mark
from memorybus.processes import signals
from memorybus.processes.child import start_child
from memorybus.processes.keeper import Keeper, keeping

from memorybus_console.operations.local_server import LocalServer, running_server

LOOK_EVERY = 1.0


class AlreadyUp(MemoryBusError):
    """Another ``memorybus up`` serves this data directory."""


class Ready(msgspec.Struct, frozen=True):
    """The report that everything runs.

    Attributes:
        ready: always true; marks the line in ``--json``.
        redis: the URL, without a password.
        embedded: whether Redis is the embedded server; false if a `url` is configured.
        adopted: whether the embedded server ran before this command and will outlive it.
        server_pid: the embedded server's process; None if there is none.
        worker_pid: the process that starts the workers, and restarts those that die.
        metrics: where metrics are served; "" for nowhere.
    """

    ready: bool
    redis: str
    embedded: bool
    adopted: bool
    server_pid: int | None
    worker: str
    worker_pid: int
    workers: tuple[str, ...]
    metrics: str = ""


class WorkerDied(msgspec.Struct, frozen=True):
    """The workers' supervisor ended by itself; another one is started after `delay` seconds."""

    exit_code: int  # the supervisor's exit code
    delay: float  # seconds until the next one is started
    reason: str = ""  # why it ended; "" if it could not say


class ServerRestarted(msgspec.Struct, frozen=True):
    """The embedded server had ended and was started again; its log is on disk."""

    pid: int


ProcessNews = Ready | WorkerDied | ServerRestarted
ReportNews = Callable[[ProcessNews], None]


def run(
    settings: Settings, command: Sequence[str], tell: ReportNews, clock: Clock = SYSTEM
) -> None:
    """Serve until a signal unwinds the stack; then stop everything that was started here.

    Args:
        settings: the settings; if they have a `url`, no server is started.

    Raises:
        AlreadyUp: another one serves this data directory.
        EmbeddedError: the server cannot be started.
        MemoryBusError: a worker cannot run with these settings or on this Redis (`NEEDS_A_PERSON`).
    """
    with up_lock(settings.data_dir), running_server(settings) as server:
        mark = new_mark()
        words = [*command, "--mark", mark]
        with keeping(lambda: start_child(words, settings), clock) as keeper:
            while True:
                _look_after(settings, keeper, mark, server, tell)
                keeper.rest(LOOK_EVERY)
                if server.revive() and server.started is not None:
                    tell(ServerRestarted(server.started.pid))


def _look_after(
    settings: Settings, keeper: Keeper, mark: str, server: LocalServer, tell: ReportNews
) -> None:
    """Check the supervisor once, and report what happened to it."""
    with signals.deferred():
        death = keeper.poll()
    if death is None:
        for report in keeper.child.reports() if keeper.child else ():
            if "worker" in report and keeper.child:
                tell(_describe_ready(settings, server, report, keeper.child.pid))
        return
    if isinstance(death.why, NEEDS_A_PERSON):
        raise death.why
    if death.child is not None:
        # Imported here because it loads the Redis client, most of the memory of this process.
        from memorybus.registry.reclaim import reclaim_lanes
        from memorybus.registry.roster import worker_id

        reclaim_lanes(settings, worker_id(death.child.pid, mark))
    tell(WorkerDied(death.code, death.delay, str(death.why or "")))


@contextmanager
def up_lock(data_dir: Path) -> Iterator[None]:
    """Hold the data directory's ``up`` lock; the kernel releases it when the process ends.

    Raises:
        AlreadyUp: another process holds it.
    """
    private.directory(data_dir)
    lock = FileLock(data_dir / "up.lock", mode=private.FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise AlreadyUp(
            f"another `memorybus up` serves {data_dir} already; stop it first, add workers to it "
            f"with `memorybus worker`, or choose another --data-dir"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _describe_ready(
    settings: Settings, server: LocalServer, report: Mapping[str, Any], pid: int
) -> Ready:
    started = server.started
    worker = str(report.get("worker", ""))
    return Ready(
        ready=True,
        redis=redacted(settings.redis_url),
        embedded=started is not None,
        adopted=started is not None and started.adopted,
        server_pid=started.pid if started else None,
        worker=worker,
        worker_pid=pid,
        workers=tuple(map(str, report.get("workers", (worker,)))),
        metrics=str(report.get("metrics", "")),
    )
