"""The recall processes of a worker: started, watched, started again, ended with it."""

import logging
import signal
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence

from memorybus import logs
from memorybus.clock import Clock
from memorybus.concurrency.backoff import restart_delay
from memorybus.config.settings import Settings, to_environ
from memorybus.processes.interpreter import module_command

_log = logging.getLogger("memorybus")

_STOP = 2.0

_LONGEST_DELAY = 5.0
"""Seconds: a session waits for its answer meanwhile."""


class JobProcess:
    """One provider's recall process, and the next one when it has died.

    Attributes:
        provider: whose recalls it runs.

    Args:
        provider: whose recalls it runs.
        environ: its environment.
        clock: time.
        log: form of its log.
    """

    def __init__(
        self, provider: str, environ: Mapping[str, str], clock: Clock, log: logs.Form
    ) -> None:
        """Start nothing yet."""
        options = ("--providers", provider, "--log", log)
        self._command = module_command("memorybus_workers", "jobs", *options)
        self.provider = provider
        self._environ = environ
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._delay = 0.0
        self._again_at = 0.0

    def start(self) -> None:
        """Start the process."""
        self._started_at = self._clock.monotonic()
        self._child = subprocess.Popen(  # noqa: S603  our own module
            self._command,
            env=self._environ,
            stdin=subprocess.PIPE,  # its end tells the child that this worker is gone
            stdout=subprocess.DEVNULL,
        )

    def watch(self) -> None:
        """Start it again if it died: soon, but not in a storm."""
        now = self._clock.monotonic()
        if self._child is None:
            if now >= self._again_at:
                self.start()
        elif self._child.poll() is not None:
            delay = restart_delay(now - self._started_at, self._delay)
            self._delay = min(_LONGEST_DELAY, delay)
            self._again_at = now + self._delay
            _log.warning(
                "the recall process of %s ended with code %d; another starts in %.1f s",
                self.provider,
                self._child.returncode,
                self._delay,
                extra={"provider": self.provider},
            )
            self._close()

    def terminate(self) -> None:
        """Ask it to end."""
        if self._child is not None:
            self._child.send_signal(signal.SIGTERM)

    def end(self, patience: float) -> None:
        """Wait for its end, then kill it; what it was doing is found and asked again (G9)."""
        if self._child is None:
            return
        try:
            self._child.wait(patience)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._close()

    def _close(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
        self._child = None


class JobProcesses:
    """Processes that run recall jobs, each one provider's: a slow one delays no other's.

    Args:
        settings: handed on through the environment.
        providers: whose recalls they run.
        count: how many for each provider.
        clock: time.
        log: form of their logs.
    """

    def __init__(
        self,
        settings: Settings,
        providers: Sequence[str],
        count: int,
        clock: Clock,
        log: logs.Form = "text",
    ) -> None:
        """Start nothing yet."""
        self._environ = to_environ(settings)
        self._count = count
        self._clock = clock
        self._log = log
        self._processes = self._made(providers)

    def _made(self, providers: Iterable[str]) -> list[JobProcess]:
        return [
            JobProcess(name, self._environ, self._clock, self._log)
            for name in tuple(providers) * self._count
        ]

    def start(self) -> None:
        """Start them all."""
        for process in self._processes:
            process.start()

    def serve(self, providers: Collection[str]) -> None:
        """Run them for these providers from now on."""
        gone = [process for process in self._processes if process.provider not in providers]
        self._end(gone)
        kept = [process for process in self._processes if process not in gone]
        new = self._made([p for p in providers if p not in {one.provider for one in kept}])
        for process in new:
            process.start()
        self._processes = kept + new

    def watch(self) -> None:
        """Start those that died again."""
        for process in self._processes:
            process.watch()

    def stop(self) -> None:
        """End them, gently first: together they have two seconds."""
        self._end(self._processes)

    def _end(self, processes: Sequence[JobProcess]) -> None:
        for process in processes:
            process.terminate()
        deadline = self._clock.monotonic() + _STOP
        for process in processes:
            process.end(max(0.0, deadline - self._clock.monotonic()))
