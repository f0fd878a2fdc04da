"""Programs that are forked from a process with the modules loaded: started in a tenth of the time.

Half of what the tests compute is otherwise the same modules, loaded a thousand times.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from helpers.processes.template import LENGTH, Order


class Preloaded:
    """One forked program, with what `subprocess.Popen` offers for one.

    Attributes:
        pid: its process id.
    """

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self._lines = status.makefile("rb")
        self._code: int | None = None
        self.pid: int = self._told()["pid"]

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            self._take_code()
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code.

        Raises:
            subprocess.TimeoutExpired: it runs longer.
        """
        if self._code is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self._take_code()
        assert self._code is not None
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _take_code(self) -> None:
        self._code = self._told()["code"]
        self._lines.close()
        self._status.close()

    def _told(self) -> dict[str, Any]:
        line = self._lines.readline()
        assert line, "the process that forks the tests' children has died"
        told: dict[str, Any] = json.loads(line)
        return told


class Template:
    """The process that has the modules loaded; it ends with this one, or by `close`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = _python_variables(environ)
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "helpers.processes.template", str(theirs.fileno())],
                env={**environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def can_run(self, argv: list[str], environ: Mapping[str, str]) -> bool:
        """Whether a child would be what ``python argv`` is: Python reads its variables once."""
        return argv[0] == "-m" and _python_variables(environ) == self._environ

    def start(
        self, argv: list[str], environ: Mapping[str, str], log: int, directory: Path | None
    ) -> Preloaded:
        """Run ``python -m …`` in a session of its own, writing to the open file `log`."""
        ours, theirs = socket.socketpair()
        order = Order(
            module=argv[1],
            arguments=argv[2:],
            environ=dict(environ),
            directory=str(directory or Path.cwd()),
        )
        data = msgspec.json.encode(order)
        with theirs:
            socket.send_fds(self._orders, [LENGTH.pack(len(data))], [log, theirs.fileno()])
            self._orders.sendall(data)
        return Preloaded(ours)

    def close(self) -> None:
        """Let it end, and wait for that."""
        self._orders.close()
        self._process.wait(30)


def _python_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what Python reads when it starts, but for its path, which a child sets itself."""
    read = {name: value for name, value in environ.items() if name.startswith("PYTHON")}
    read.pop("PYTHONPATH", None)
    return read
