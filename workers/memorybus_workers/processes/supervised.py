"""One worker process under a supervisor: started, heard, ended."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

import msgspec
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, to_environ
from memorybus.errors import MemoryBusError, error_named

_LONGEST_LINE = 1 << 16
"""Bytes of a line that are kept: a provider may print without end (G10)."""

_MOST_CHUNKS = 16
"""Of so many bytes, read at one look: more than a pipe holds of a process that has ended."""

_LOOK = 0.05
"""Seconds between looks at what it says while it ends."""


class Report(msgspec.Struct, frozen=True):
    """What a worker says on stdout: that it is ready, whom it gives up, or why it ends."""

    worker: str = ""
    apart: str = ""
    error: str = ""
    message: str = ""


class WorkerProcess:
    """One worker process.

    Attributes:
        worker: its id, once it is ready.
        apart: providers that it does not serve any more, since their calls hang.
        error: why it ends, if it said so.
        pid: its process id.
        born_at: when it was started (monotonic).
    """

    def __init__(self, words: Sequence[str], settings: Settings, born_at: float) -> None:
        """Start it."""
        self.worker = ""
        self.apart: set[str] = set()
        self.error: MemoryBusError | None = None
        self.born_at = born_at
        self._text = b""
        self._leaves_until: float | None = None
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            words,
            env=to_environ(settings),
            stdin=subprocess.PIPE,  # its end tells the worker that we are gone
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.pid = self._process.pid
        if self._process.stdout is not None:
            os.set_blocking(self._process.stdout.fileno(), False)

    def listen(self) -> int | None:
        """Take in what it has said; return its exit code, None while it runs."""
        code = self._process.poll()  # before reading: what it said before its end is not missed
        for _ in range(_MOST_CHUNKS):
            if not (chunk := self._read()):
                break
            *lines, rest = (self._text + chunk).split(b"\n")
            self._text = rest[-_LONGEST_LINE:]
            for line in lines:
                with contextlib.suppress(msgspec.MsgspecError):  # a provider that prints
                    self._heard(msgspec.json.decode(line, type=Report))
        return code

    def _read(self) -> bytes:
        if self._process.stdout is None:
            return b""
        try:
            return self._process.stdout.read(_LONGEST_LINE) or b""
        except (ValueError, OSError):  # closed: another thread ends it by force
            return b""

    def _heard(self, report: Report) -> None:
        if report.error:
            self.error = error_named(report.error, report.message)
        if report.apart:
            self.apart.add(report.apart)
        self.worker = report.worker or self.worker

    def tell(self) -> None:
        """Tell it to end."""
        self._process.send_signal(signal.SIGTERM)

    def leave(self, patience: float) -> None:
        """Tell it to end, the first time; end it by force when `patience` seconds are over."""
        if self._leaves_until is None:
            self._leaves_until = SYSTEM.monotonic() + patience
            self.tell()
        elif SYSTEM.monotonic() > self._leaves_until:
            self._process.kill()

    def tell_again(self) -> None:
        """Tell it to end at once; by another signal, as two of one kind that wait are one."""
        self._process.send_signal(signal.SIGINT)

    def ended(self, timeout: float) -> int:
        """Wait for its end, by force after `timeout` seconds; return its exit code.

        What it says meanwhile is taken in: a full pipe would hold up its orderly end.
        """
        until = SYSTEM.monotonic() + timeout
        code = self.listen()
        while code is None and SYSTEM.monotonic() < until:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LOOK)
            code = self.listen()
        if code is None:
            self._process.kill()
            code = self._process.wait()
        self.close()
        return code

    def close(self) -> None:
        """Let go of an ended process, and of what it left behind if it was killed."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
