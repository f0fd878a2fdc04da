"""A Redis server of our own, on a unix socket in the data directory.

There is one server per data directory. The server process inherits a kernel lock and holds it as
long as it lives, whoever started it. So the socket file of a killed server is harmless, and a lost
socket file never leads to a second server on the same files.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from memorybus import private
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.embedded.binary import ServerBinary, find_server_binary
from memorybus.embedded.files import (
    LOG_MAX,
    TAIL_LINES,
    check_data_format,
    check_socket_path,
    explain_end,
    server_arguments,
)
from memorybus.errors import ServerFailed

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
KILL_TIMEOUT = 5.0
ANSWER_TIMEOUT = 1.0  # seconds that one PING may take; it is repeated until START_TIMEOUT
POLL_SECONDS = 0.01


class RunningServer(msgspec.Struct, frozen=True):
    """A server that answers."""

    adopted: bool  # whether it ran already; then `EmbeddedRedis.stop` leaves it alone
    version: str  # its release; for Valkey, Valkey's own
    pid: int  # its process


class _Silence(msgspec.Struct, frozen=True):
    """The server does not answer: why, and whether it is loading its data."""

    why: str
    loading: bool = False


class EmbeddedRedis:
    """Starts, adopts and stops the server behind ``settings.socket_path``.

    Its append-only file is synced every second; spools send again what a power cut took (G1). The
    server has a session of its own: it outlives the process that started it, unless that calls
    `stop` or leaves the ``with`` block.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = SYSTEM,
        find: Callable[[], ServerBinary] | None = None,
    ) -> None:
        self.socket = settings.socket_path.absolute()
        self.directory = self.socket.parent
        self.log_path = self.directory / "redis.log"
        self._clock = clock
        check = partial(check_data_format, self.directory)
        self._find = find or partial(find_server_binary, check=check)
        self._child: subprocess.Popen[bytes] | None = None
        self._child_answered = False
        self._given_up = False
        self._log_begin = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, timeout: float = START_TIMEOUT) -> RunningServer:
        """Adopt the server that runs, or start one; of several processes one starts it.

        `timeout`: seconds without an answer, besides the time in which it loads its data.
        """
        check_socket_path(self.socket)
        self._make_directory()
        try:
            return self._await_answer(timeout, on_silence=self._start_if_free)
        except BaseException:
            self.stop()
            raise

    def give_up(self) -> None:
        """Make a `start` that still waits end soon with `ServerFailed`; for a signal handler."""
        self._given_up = True

    def wait_ready(self, timeout: float = START_TIMEOUT) -> RunningServer:
        """Wait for the server to answer, without starting one."""
        return self._await_answer(timeout, on_silence=lambda: None)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop the server if it was started here; it syncs its file first. Safe to call twice."""
        child, self._child = self._child, None
        if child is None:
            return
        if not self._end(child, signal.SIGTERM, timeout):
            self._end(child, signal.SIGKILL, KILL_TIMEOUT)

    # -- waiting --------------------------------------------------------------------------------

    def _await_answer(self, timeout: float, on_silence: Callable[[], None]) -> RunningServer:
        last_sign = self._clock.monotonic()
        why = ""
        while self._clock.monotonic() - last_sign < timeout:
            if self._given_up:
                raise ServerFailed(f"the start was cancelled: no server answered on {self.socket}")
            answer = self._ask()
            if isinstance(answer, RunningServer):
                self._child_answered = True
                return answer
            why = answer.why
            if answer.loading:
                last_sign = self._clock.monotonic()
            else:
                on_silence()
            self._check_child()
            self._clock.sleep(POLL_SECONDS)
        raise ServerFailed(
            f"no Redis server answers on {self.socket} within {timeout:g} s ({why}); the process "
            f"that holds {self._lock_path}, if there is one, hangs. {self._tail()}"
        )

    def _ask(self) -> RunningServer | _Silence:
        # Imported here: an agent process that only publishes never starts a server.
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.exceptions import BusyLoadingError, RedisError
        from redis.retry import Retry

        client = Redis(
            unix_socket_path=str(self.socket),
            socket_timeout=ANSWER_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
        try:
            client.ping()  # unlike INFO, PING is not answered while the data is still being loaded
            return self._started(client.info("server"))
        except RedisError as error:
            return _Silence(str(error), loading=isinstance(error, BusyLoadingError))
        finally:
            client.close()

    def _started(self, info: Any) -> RunningServer:
        pid = int(info["process_id"])
        version = str(info.get("valkey_version") or info["redis_version"])
        return RunningServer(self._child is None or self._child.pid != pid, version, pid)

    def _check_child(self) -> None:
        if self._child is None or self._child.poll() is None:
            return
        code, self._child = self._child.returncode, None
        if self._child_answered:
            return
        raise ServerFailed(f"the Redis server ended at once (exit code {code}). {self._tail()}")

    def _end(self, child: "subprocess.Popen[bytes]", how: signal.Signals, timeout: float) -> bool:
        child.send_signal(how)
        deadline = self._clock.monotonic() + timeout
        while child.poll() is None and self._clock.monotonic() < deadline:
            self._clock.sleep(POLL_SECONDS)
        return child.poll() is not None

    # -- starting -------------------------------------------------------------------------------

    @property
    def _lock_path(self) -> Path:
        return self.directory / "server.lock"

    def _make_directory(self) -> None:
        try:
            private.directory(self.directory)
            self.directory.chmod(private.DIRECTORY)
        except OSError as error:
            raise ServerFailed(f"{self.directory} cannot be made private: {error}") from error

    def _start_if_free(self) -> None:
        if self._child is not None:
            return
        try:
            with self._lock() as lock:
                if lock is not None:
                    self._spawn(lock)
        except OSError as error:
            raise ServerFailed(f"the Redis server cannot be started: {error}") from error

    @contextmanager
    def _lock(self) -> Iterator[int | None]:
        """Yield the descriptor of the lock, or None if somebody else holds it."""
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield lock if _try_lock(lock) else None
        finally:
            # A server started meanwhile has inherited the lock and keeps it.
            os.close(lock)

    def _spawn(self, lock: int) -> None:
        binary = self._find()
        self._begin_log()
        self._child_answered = False
        self._child = subprocess.Popen(  # noqa: S603  no shell; the binary was checked
            server_arguments(binary.path, self.socket, self.log_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            umask=private.UMASK,
            start_new_session=True,
        )

    def _begin_log(self) -> None:
        size = self.log_path.stat().st_size if self.log_path.exists() else 0
        if size > LOG_MAX:
            self.log_path.replace(self.log_path.with_suffix(".log.old"))
            size = 0
        self._log_begin = size

    def _tail(self) -> str:
        lines: list[str] = []
        if self.log_path.exists():
            written = self.log_path.read_bytes()[self._log_begin :]
            lines = written.decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
        return explain_end(lines, self.directory, shutil.disk_usage(self.directory).free)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
