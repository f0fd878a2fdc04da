"""Starts a child process with its environment, reads its reports, and ends it."""

import os
import select
import signal
import subprocess
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, to_environ
from memorybus.errors import MemoryBusError, error_named
from memorybus.processes import signals

KILL_RESERVE_SECONDS = 3.0
"""Seconds after its own `grace` until a child that was asked to end is killed."""

_CHUNK_BYTES = 1 << 16
"""The most bytes read at once, and kept of a line: a provider may print without end (G10)."""

_MAX_CHUNKS = 16
"""The most chunks read by one `listen`: more than the pipe of an ended child may contain."""

_MAX_REPORTS = 100
"""The most reports that are kept until they are read (G10); the oldest are dropped first."""

_POLL_SECONDS = 0.05  # seconds between looks at a child that is about to end


class ChildProcess:
    """A running child; the lines of its output that are JSON objects are its reports.

    It notices our end by its standard input. It leads its own session, so that a Ctrl-C reaches
    only us, and we end it in good order.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        patience: float,
        *,
        directory: Path | None = None,
        quiet: bool = False,
    ) -> None:
        self.patience = patience  # seconds between SIGTERM and SIGKILL
        self.error: MemoryBusError | None = None  # why it ends, if it has reported that
        self._reports: deque[dict[str, Any]] = deque(maxlen=_MAX_REPORTS)
        self._text = b""
        self._leads = not quiet
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command,
            env=environ,
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if quiet else subprocess.PIPE,
            bufsize=0,
            start_new_session=not quiet,
        )
        self.pid = self._process.pid  # its process id
        self._output = None if quiet else self._process.stdout
        if self._output is not None:
            os.set_blocking(self._output.fileno(), False)

    # -- reports ----------------------------------------------------------------------------------

    def listen(self) -> int | None:
        """Read its new reports; return its exit code, None while it runs. Never waits."""
        code = self._process.poll()  # before reading, so that its last report is not missed
        for _ in range(_MAX_CHUNKS):
            chunk = self._read()
            if not chunk:
                break
            *lines, rest = (self._text + chunk).split(b"\n")
            self._text = rest[-_CHUNK_BYTES:]
            for line in lines:
                self._take(line)
        return code

    def _read(self) -> bytes | None:
        output = self._output  # a local variable, since another thread may close it now
        if output is None:
            return b""
        try:
            chunk = output.read(_CHUNK_BYTES)
        except (ValueError, OSError):  # another thread has closed it
            chunk = b""
        if chunk == b"":
            self._output = None
        return chunk

    def _take(self, line: bytes) -> None:
        try:
            report = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError:  # a provider printed it
            return
        self._reports.append(report)
        if "error" in report:
            parts = (str(report.get(name, "")) for name in ("message", "next"))
            self.error = error_named(str(report["error"]), *parts)

    def reports(self) -> Iterator[dict[str, Any]]:
        while self._reports:
            yield self._reports.popleft()

    def report(self) -> dict[str, Any] | None:
        """Wait for the next report, None at the end; an error that the child reports is raised."""
        while not self._reports and self._output is not None:
            wait_for_any([self], None)
            self.listen()
        if not self._reports:
            return None
        report = self._reports.popleft()
        if "error" in report and self.error is not None:
            raise self.error
        return report

    # -- ending -----------------------------------------------------------------------------------

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Send SIGINT, since a second SIGTERM would be lost while the first one is pending."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int | None:
        until = float("inf") if timeout is None else SYSTEM.monotonic() + timeout
        code = self.listen()
        while code is None and (left := until - SYSTEM.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(min(_POLL_SECONDS, left))
            code = self.listen()
        return code

    def stop(self, timeout: float | None = None) -> int:
        self.terminate()
        return self.end(timeout)

    def end(self, timeout: float | None = None) -> int:
        code = self.wait(self.patience if timeout is None else timeout)
        if code is None:
            self.kill()
            code = self._process.wait()
        self.close()
        return code

    def close(self) -> None:
        """Release a child that has ended, and kill processes that it left because it was killed."""
        if self._leads:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._output = None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def fileno(self) -> int | None:
        """Return the descriptor of its output; None once the output has ended."""
        return None if self._output is None else self._output.fileno()


def wait_for_any(
    children: Collection[ChildProcess], timeout: float | None, *, also: Sequence[int] = ()
) -> None:
    outputs = [child.fileno() for child in children]
    descriptors = [*also, *(output for output in outputs if output is not None)]
    if None in outputs:  # it is about to end, which no descriptor shows
        timeout = _POLL_SECONDS if timeout is None else min(_POLL_SECONDS, timeout)
    select.select(descriptors, [], [], timeout)


def start_child(
    command: Sequence[str], settings: Settings, *, directory: Path | None = None
) -> ChildProcess:
    environ = to_environ(settings)
    return ChildProcess(
        command, environ, settings.grace + KILL_RESERVE_SECONDS, directory=directory
    )


@contextmanager
def running_child(
    command: Sequence[str], settings: Settings, *, directory: Path | None = None
) -> Iterator[ChildProcess]:
    """Run a child for as long as the block lasts; it is stopped when the block ends, in any way."""
    child: ChildProcess | None = None
    try:
        with signals.deferred():
            child = start_child(command, settings, directory=directory)
        yield child
    finally:
        if child is not None:
            with signals.deferred(child.terminate):
                child.stop()
