"""Runs a command with one text on its standard input and a bounded time."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from memorybus.clock import SYSTEM, Clock
from memorybus.processes.command_end import CommandEnd

_STDERR_BYTES: Final = 4_096
"""How many bytes at the end of its standard error are read."""

_POLL_SECONDS: Final = 0.02
"""Seconds between looks of `wait`."""

_REAP_SECONDS: Final = 1.0
"""Seconds to wait for the kernel to remove a killed process."""


class FedCommand:
    """A running command. Its input and its standard error are files, so it never makes us wait.

    It leads its own session, whose processes are all killed if it takes too long.

    Args:
        command: a program and its arguments; no shell reads them.
        environ: its environment.
        text: the text on its standard input.
        timeout: the seconds that it may take.
        clock: time.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        text: bytes,
        timeout: float,
        clock: Clock = SYSTEM,
    ) -> None:
        """Start it."""
        self._clock = clock
        self._timeout = timeout
        self._deadline = clock.monotonic() + timeout
        self._ended: CommandEnd | None = None
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  it is read at the end
        try:
            self._process = self._start(command, environ, text)
        except BaseException:
            self._stderr.close()
            raise

    def _start(
        self, command: Sequence[str], environ: Mapping[str, str], text: bytes
    ) -> "subprocess.Popen[bytes]":
        with tempfile.TemporaryFile() as given:
            given.write(text)
            given.seek(0)
            return subprocess.Popen(  # noqa: S603  no shell; the user's own command
                command,
                env=environ,
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                start_new_session=True,
            )

    def poll(self) -> CommandEnd | None:
        """Return how it ended, None while it runs. Never waits for it."""
        if self._ended is None:
            code = self._process.poll()
            if code is not None:
                self._ended = CommandEnd(self._describe_end(code))
                self._stderr.close()
            elif self._clock.monotonic() >= self._deadline:
                self._end(f"it had not ended after {self._timeout:g} s")
        return self._ended

    def wait(self) -> CommandEnd:
        """Wait until it ends or its time is over; return how it ended."""
        while (end := self.poll()) is None:
            self._clock.sleep(_POLL_SECONDS)
        return end

    def kill(self) -> None:
        """Kill it, and the processes that it started, unless it has ended."""
        if self._ended is None:
            self._end("it was ended")

    def _end(self, why: str) -> None:
        self._ended = CommandEnd(why)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_SECONDS)
        self._stderr.close()

    def _describe_end(self, code: int) -> str:
        """Return why it failed, with its last line; "" if it did not."""
        if code == 0:
            return ""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        lines = self._stderr.read(_STDERR_BYTES).decode("utf-8", "replace").strip().splitlines()
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        return f"{lines[-1]} ({how})" if lines else how
