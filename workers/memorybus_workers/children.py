"""The recall processes of a worker: started, watched, started again, ended with it."""

import logging
import signal
import subprocess
import sys
from collections.abc import Sequence

from memorybus.clock import Clock
from memorybus.settings import Settings, to_environ

_log = logging.getLogger("memorybus")

_STOP = 5.0
_PAUSE_AFTER = 3
_PAUSE = 5.0


class JobProcesses:
    """Some processes that each run recall jobs.

    Args:
        settings: handed on through the environment.
        providers: whose recalls they run.
        count: how many.
        clock: time.
    """

    def __init__(
        self, settings: Settings, providers: Sequence[str], count: int, clock: Clock
    ) -> None:
        """Start nothing yet."""
        self._command = [
            sys.executable,
            "-m",
            "memorybus_workers",
            "jobs",
            "--providers",
            ",".join(providers),
        ]
        self._environ = to_environ(settings)
        self._clock = clock
        self._wanted = count
        self._running: list[subprocess.Popen[bytes]] = []
        self._deaths = 0
        self._again_at = 0.0

    def start(self) -> None:
        """Start them all."""
        self._running = [self._spawn() for _ in range(self._wanted)]

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  our own module
            self._command,
            env=self._environ,
            stdin=subprocess.PIPE,  # its end tells the child that this worker is gone
            stdout=subprocess.DEVNULL,
        )

    def watch(self) -> None:
        """Start those that died again; after several deaths, with pauses."""
        living = [child for child in self._running if child.poll() is None]
        died = len(self._running) - len(living)
        now = self._clock.monotonic()
        if died:
            self._deaths += died
            self._again_at = now + (_PAUSE if self._deaths > _PAUSE_AFTER else 0.0)
            _log.warning("%d recall processes ended; starting them again", died)
        self._running = living
        if len(living) < self._wanted and now >= self._again_at:
            self._running += [self._spawn() for _ in range(self._wanted - len(living))]

    def stop(self) -> None:
        """End them, gently first."""
        for child in self._running:
            child.send_signal(signal.SIGTERM)
        for child in self._running:
            try:
                child.wait(_STOP)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdin is not None:
                child.stdin.close()
        self._running = []
