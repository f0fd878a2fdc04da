"""Programs that are forked from a process with the modules loaded: started in a tenth of the time.

Half of what the tests compute is otherwise the same modules, loaded a thousand times. What such a
program starts by `memorybus.processes.child` is forked in the same way.
"""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import msgspec
from memorybus.processes import child

STARTED_BY = "MB_TEST_STARTED_BY"
"""In the environment of a forked program: the process that started it, which is not its parent."""

ROOM = 1 << 15
"""Bytes for a program's command line and for its environment; see `template`."""

_SET_LATER = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
"""What a forked program sets itself, or has no use for; Python reads other variables once."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is to run.

    Attributes:
        words: the command line, after the name of Python.
        environ: the whole environment.
        directory: where it works.
        umask: of whoever starts it.
    """

    words: list[str]
    environ: dict[str, str]
    directory: str
    umask: int


def order_of(words: Sequence[str], environ: Mapping[str, str], directory: Path | None) -> Order:
    """Return the order for a program that this process starts."""
    (line,) = re.findall(r"(?m)^Umask:\s*(\d+)$", Path("/proc/self/status").read_text())
    return Order(
        words=list(words),
        environ=dict(environ),
        directory=str(directory or Path.cwd()),
        umask=int(line, 8),
    )


class Preloaded:
    """One forked program, with what `subprocess.Popen` offers for one.

    Attributes:
        pid: its process id.
        stdin: what it reads, if that is a pipe.
        stdout: what it writes, if that is a pipe.
    """

    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self._lines = status.makefile("rb")
        self._lock = threading.Lock()
        self._code: int | None = None
        self.pid: int = self._told()["pid"]

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        with self._lock:
            if self._code is None and select.select([self._status], [], [], 0)[0]:
                self._code = self._told()["code"]
                self._lines.close()
                self._status.close()
            return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code.

        Raises:
            subprocess.TimeoutExpired: it runs longer.
        """
        until = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            left = until - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            with suppress(ValueError):  # another thread has read the code, and closed the socket
                select.select([self._status], [], [], min(left, 1.0))
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended just now
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send it SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def _told(self) -> dict[str, Any]:
        line = self._lines.readline()
        assert line, "the process that forks the tests' children has died"
        told: dict[str, Any] = json.loads(line)
        return told


def can_fork(command: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether a fork would be what a Python that is started afresh is."""
    of_a_module = command[1] == "-m" or list(command[1:3]) == ["-P", "-m"]
    known = _read_once(environ) == _read_once(os.environ)
    return command[0] == sys.executable and of_a_module and known


def _read_once(environ: Mapping[str, str]) -> dict[str, str]:
    read = {name: value for name, value in environ.items() if name.startswith("PYTHON")}
    return {name: value for name, value in read.items() if name not in _SET_LATER}


def run(orders: socket.socket, order: Order, files: Sequence[int]) -> Preloaded:
    """Run a program with these open files as its standard input, output and error."""
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(orders, [msgspec.json.encode(order)], [*files, theirs.fileno()])
    return Preloaded(ours)


class Template:
    """The process that has the modules loaded; it ends with this one, or by `close`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._orders, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        module, room = ("-m", "helpers.processes.template"), "x" * ROOM
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *module, str(theirs.fileno()), room],
                env={**environ, "PYTHONPATH": str(Path(__file__).parents[2]), "ROOM": room},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(
        self, words: list[str], environ: Mapping[str, str], log: int, directory: Path | None
    ) -> Preloaded:
        """Run a program in a session of its own, writing to the open file `log`."""
        order = order_of(words, environ, directory)
        with open(os.devnull, "rb") as nothing:
            return self.run(order, (nothing.fileno(), log, log))

    def run(self, order: Order, files: Sequence[int]) -> Preloaded:
        """Run a program with these open files as its standard input, output and error."""
        return run(self._orders, order, files)

    def close(self) -> None:
        """Let it end, and wait for that."""
        self._orders.close()
        self._process.wait(30)


def fork_children(run: Callable[[Order, Sequence[int]], Preloaded]) -> None:
    """Let the template fork what `memorybus.processes.child` starts in this process."""

    def start(
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None,
        stdout: int,
        **others: Any,
    ) -> "subprocess.Popen[bytes] | Preloaded":
        if not can_fork(command, env):
            return subprocess.Popen(command, env=env, cwd=cwd, stdout=stdout, **others)
        order = order_of(command[1:], {**env, STARTED_BY: str(os.getpid())}, cwd)
        return _run_piped(partial(run, order), reads=stdout == subprocess.PIPE)

    stand_in = SimpleNamespace(
        Popen=start,
        PIPE=subprocess.PIPE,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )
    vars(child)["subprocess"] = stand_in


def _run_piped(run: Callable[[Sequence[int]], Preloaded], *, reads: bool) -> Preloaded:
    """Run a program with a pipe as its input, and one as its output if anybody reads that."""
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    if not reads:
        os.close(theirs_out)
        theirs_out = os.open(os.devnull, os.O_WRONLY)
    process = run((theirs_in, theirs_out, 2))
    os.close(theirs_in)
    os.close(theirs_out)
    process.stdin = os.fdopen(ours_in, "wb", buffering=0)
    process.stdout = os.fdopen(ours_out, "rb", buffering=0)
    return process
