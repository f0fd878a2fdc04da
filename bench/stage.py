"""The stage of a measurement: an embedded Redis in a temporary directory, buses and workers on it.

Every part of the suite has a server of its own, started as `memorybus up` starts it (append-only
file, noeviction, ``stream-node-max-bytes`` as the embedded server sets it), and reaches it over
its unix socket. What is compared in a ratio always runs against the same server.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import msgspec
import psutil
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings, to_environ
from memorybus.embedded.binary import ServerBinary, find_server_binary
from memorybus.embedded.server import EmbeddedRedis
from memorybus.events import Envelope, TurnCompleted
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.wire.codec import Encoder
from redis import Redis
from texts import SESSIONS, Turn

ROOT = Path(__file__).resolve().parents[1]

Worker: TypeAlias = "subprocess.Popen[bytes]"

WAIT_SECONDS = 120.0
"""Seconds that anything waited for may take."""

NOTHING: Mapping[str, str] = MappingProxyType({})

_POLL_SECONDS = 0.005

_WORKER = (sys.executable, "-m", "memorybus_workers", "worker")

_NO_SEALING_SECONDS = 1e9
"""Seconds: no worker seals the log while something else is measured."""


class Stage:
    """A server and a data directory, gone when the context ends.

    Attributes:
        settings: point at the server.
        redis: a client with redis-py's own defaults, as a hand-written program would have it.
    """

    def __init__(
        self, find: Callable[[], ServerBinary] = find_server_binary, **settings: Any
    ) -> None:
        """Start nothing yet; `find` chooses the server."""
        self._directory = tempfile.TemporaryDirectory(prefix="mb-bench-")
        self.data_dir = Path(self._directory.name)
        settings = {"seal_after": _NO_SEALING_SECONDS, **settings}
        self.settings = Settings(data_dir=self.data_dir, **settings)
        self.keys = Keys(self.settings.namespace)
        self._server = EmbeddedRedis(self.settings, find=find)
        self.redis = Redis(unix_socket_path=str(self.settings.socket_path))

    def __enter__(self) -> Self:
        """Start the server."""
        self._pid = self._server.start().pid
        return self

    def listen(self) -> int:
        """Let the server listen on a TCP port too, and point the settings at it; return it."""
        port = free_port()
        self.redis.config_set("bind", "127.0.0.1")
        self.redis.config_set("port", port)
        self.settings = msgspec.structs.replace(self.settings, url=f"redis://127.0.0.1:{port}/0")
        return port

    def settle(self) -> None:
        """Wait until the server no longer rewrites its append-only file, which takes a core."""
        busy = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")

        def quiet() -> bool:
            said = self.redis.info("persistence")
            return not any(int(said[name]) for name in busy)

        wait_for("the append-only file to be rewritten", quiet, look=0.05)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Keep the server stopped until the context ends."""
        self._server.stop()
        try:
            yield
        finally:
            self._pid = self._server.start().pid

    @contextmanager
    def pinned(self, *, same_core: bool) -> Iterator[None]:
        """Keep server and client on one core, or on two, until the context ends (Linux)."""
        cores = sorted(os.sched_getaffinity(0))
        tasks = [int(task.name) for task in Path(f"/proc/{self._pid}/task").iterdir()]
        try:
            os.sched_setaffinity(0, {cores[0]})
            for task in tasks:
                os.sched_setaffinity(task, {cores[0] if same_core else cores[-1]})
            yield
        finally:
            for task in (0, *tasks):
                os.sched_setaffinity(task, set(cores))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Stop the server and delete its files; an error takes the server's last words along."""
        if error is not None:
            error.add_note(self._server.log_path.read_text()[-500:])
        self.redis.close()
        self._server.stop()
        self._directory.cleanup()

    def with_providers(self, kinds: dict[str, str]) -> Settings:
        """Return settings under which the named instances are of these kinds."""
        return msgspec.structs.replace(
            self.settings,
            providers=tuple(kinds),
            provider={name: {"kind": kind} for name, kind in kinds.items()},
        )

    def beside(self, namespace: str) -> Self:
        """Return this stage under another namespace: another log on the same server."""
        other = copy(self)
        other.settings = msgspec.structs.replace(self.settings, namespace=namespace)
        other.keys = Keys(namespace)
        return other

    @contextmanager
    def worker(
        self,
        settings: Settings,
        jobs: int = 0,
        options: Sequence[str] = (),
        added: Mapping[str, str] = NOTHING,
    ) -> Iterator[None]:
        """Run a real worker process until the context ends; see `workers`."""
        with self.workers(settings, 1, jobs, options, added):
            yield

    @contextmanager
    def workers(
        self,
        settings: Settings,
        count: int,
        jobs: int = 0,
        options: Sequence[str] = (),
        added: Mapping[str, str] = NOTHING,
    ) -> Iterator[list[Worker]]:
        """Start real worker processes at once; run them until the context ends.

        Args:
            settings: theirs.
            count: how many.
            jobs: recall processes of each.
            options: further words of their command.
            added: further variables of their environment.
        """
        log = self.data_dir / "worker.log"
        command = [*_WORKER, "--jobs", str(jobs), *options]
        running: list[Worker] = []
        try:
            running += [_start_worker(settings, command, log, added) for _ in range(count)]
            for one in running:
                _await_ready(one)
            yield running
        except BaseException as error:
            error.add_note(f"the workers' log: {log.read_text()[-500:]}")
            raise
        finally:
            for one in running:
                one.terminate()
            for one in running:
                _end(one)

    def owners(self, provider: str) -> dict[int, str]:
        """Return the worker that owns each lane now; lanes without an owner are left out."""
        keys = [self.keys.lease(p, provider) for p in range(self.settings.partitions)]
        held = self.redis.mget(keys)
        return {p: h.decode().partition(":")[2] for p, h in enumerate(held) if h}

    def heads(self) -> dict[int, int]:
        """Return how many events each partition holds."""
        redis = connect_redis(self.settings)
        try:
            return {head.partition: head.n for head in EventLog(redis, self.settings).heads()}
        finally:
            redis.close()

    def applied(self, provider: str) -> dict[int, tuple[int, int]]:
        """Return each lane's checkpoint: (n, wall time in ms when it last moved)."""
        partitions = range(self.settings.partitions)
        with self.redis.pipeline(transaction=False) as pipe:
            for partition in partitions:
                pipe.hmget(self.keys.lane(partition, provider), "n", "at")
            replies = pipe.execute()
        return {
            p: (int(n or 0), int(at or 0)) for p, (n, at) in zip(partitions, replies, strict=True)
        }

    def await_applied(self, provider: str, look: float = _POLL_SECONDS) -> int:
        """Wait until every lane has reached its partition's end; return the last move (ms)."""
        heads = self.heads()
        lanes: dict[int, tuple[int, int]] = {}

        def done() -> bool:
            lanes.update(self.applied(provider))
            return all(lanes[partition][0] >= n for partition, n in heads.items())

        wait_for(f"{provider} to apply {sum(heads.values())} events", done, look)
        return max(at for _, at in lanes.values())


def free_port() -> int:
    """Return a TCP port of loopback on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def resident(pid: int) -> int:
    """Return a process's resident memory, in bytes."""
    return int(psutil.Process(pid).memory_info().rss)


def can_pin() -> bool:
    """Say whether processes can be held on chosen cores here, and there are two."""
    return hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1


def environment() -> dict[str, str]:
    """Return our environment, with the providers of the suite where processes find them."""
    paths = (str(ROOT), str(ROOT / "bench"), os.environ.get("PYTHONPATH", ""))
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _start_worker(
    settings: Settings, command: Sequence[str], log: Path, added: Mapping[str, str]
) -> Worker:
    with log.open("ab") as errors:
        return subprocess.Popen(
            command,
            env=to_environ(settings, environment() | dict(added)),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
        )


def _await_ready(worker: Worker) -> None:
    if worker.stdout is None or not worker.stdout.readline():
        raise RuntimeError("the worker ended before it was ready")


def _end(worker: Worker) -> None:
    worker.wait(WAIT_SECONDS)
    if worker.stdout is not None:
        worker.stdout.close()


def wait_for(what: str, done: Callable[[], bool], look: float = _POLL_SECONDS) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: it is not after `WAIT_SECONDS`.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {WAIT_SECONDS:g} s for {what}")
        time.sleep(look)


class Agent:
    """Publishes turns through the sessions of one bus, as an agent does."""

    def __init__(self, bus: MemoryBus, prefix: str = "session") -> None:
        """Begin the sessions."""
        self.bus = bus
        self.sessions: Sequence[Session] = [
            bus.session(f"{prefix}-{number:04d}", user=f"user-{number % 31}", warm=False)
            for number in range(SESSIONS)
        ]
        self._encoder = Encoder(bus.settings.compress_min_bytes)

    def publish(self, turn: Turn) -> None:
        """Publish one turn, with the ordinal that makes its id derivable."""
        self.sessions[turn.session].turn_completed(
            turn.user,
            turn.assistant,
            ordinal=turn.ordinal,
            model=turn.model,
            tokens_in=turn.tokens_in,
            tokens_out=turn.tokens_out,
        )

    def flush(self) -> None:
        """Wait until the log has everything.

        Raises:
            TimeoutError: it has not.
        """
        if not self.bus.flush("logged", WAIT_SECONDS):
            raise TimeoutError(f"the log took no events: {self.bus.problem}")

    def encoded(self, turn: Turn) -> bytes:
        """Return the msgpack bytes of the envelope that `publish` makes of a turn."""
        session = self.sessions[turn.session]
        event = TurnCompleted(
            user=turn.user,
            assistant=turn.assistant,
            ordinal=turn.ordinal,
            model=turn.model,
            tokens_in=turn.tokens_in,
            tokens_out=turn.tokens_out,
        )
        return self._encoder.envelope(
            Envelope(
                id=self.bus.new_id(),
                key=session.key,
                scope=session.scope,
                session=session.ref,
                at=1_700_000_000_000,
                event=event,
            )
        )
