"""The recall processes of a worker: started, watched, started again, ended with it."""

import logging
import signal
import subprocess
import sys
from collections.abc import Sequence

from memorybus import logs
from memorybus.clock import Clock
from memorybus.settings import Settings, to_environ

_log = logging.getLogger("memorybus")

_STOP = 2.0
_PAUSE_AFTER = 3
_PAUSE = 5.0


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
        self._options = ("--log", log)
        self._providers = tuple(providers) * count
        self._environ = to_environ(settings)
        self._clock = clock
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._deaths = 0
        self._again_at = 0.0

    def start(self) -> None:
        """Start them all."""
        self._running = {place: self._spawn(place) for place in range(len(self._providers))}

    def _spawn(self, place: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "memorybus_workers", "jobs", *self._options]
        return subprocess.Popen(  # noqa: S603  our own module
            [*command, "--providers", self._providers[place]],
            env=self._environ,
            stdin=subprocess.PIPE,  # its end tells the child that this worker is gone
            stdout=subprocess.DEVNULL,
        )

    def watch(self) -> None:
        """Start those that died again; after several deaths, with pauses."""
        dead = [place for place, child in self._running.items() if child.poll() is not None]
        now = self._clock.monotonic()
        for place in dead:
            self._close(self._running.pop(place))
        if dead:
            self._deaths += len(dead)
            self._again_at = now + (_PAUSE if self._deaths > _PAUSE_AFTER else 0.0)
            _log.warning("%d recall processes ended; starting them again", len(dead))
        if now >= self._again_at:
            for place in set(range(len(self._providers))) - self._running.keys():
                self._running[place] = self._spawn(place)

    def _close(self, child: subprocess.Popen[bytes]) -> None:
        if child.stdin is not None:
            child.stdin.close()

    def stop(self) -> None:
        """End them, gently first."""
        for child in self._running.values():
            child.send_signal(signal.SIGTERM)
        for child in self._running.values():
            try:
                child.wait(_STOP)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            self._close(child)
        self._running = {}
