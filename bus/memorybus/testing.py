"""What tests inject: a clock that they move, and crash points that they name."""

import os
import signal
from collections import Counter
from collections.abc import Callable

CrashPoint = Callable[[str], None]
"""A function that the code calls at named places; it does nothing in production."""


def no_crash(name: str) -> None:
    """Pass every named place without effect."""


class CrashPoints:
    """Kills this process with SIGKILL when it passes a named place for the n-th time.

    Args:
        spec: ``name`` or ``name:n``, for example ``applier.after_provider_commit:3``.
    """

    def __init__(self, spec: str) -> None:
        self.name, _, nth = spec.partition(":")
        self.nth = int(nth or 1)
        self.passed: Counter[str] = Counter()

    def __call__(self, name: str) -> None:
        """Count a pass of `name`; kill the process if it is the right one."""
        self.passed[name] += 1
        if name == self.name and self.passed[name] == self.nth:
            os.kill(os.getpid(), signal.SIGKILL)


def crash_points(spec: str) -> CrashPoint:
    """Return the crash points of the setting ``crash_at``; none if it is empty."""
    return CrashPoints(spec) if spec else no_crash


class FakeClock:
    """A clock that only moves when `advance` or `sleep` is called."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.wall_ms = now_ms
        self.mono = 1_000.0

    def now_ms(self) -> int:
        """Return the fake wall time in milliseconds."""
        return self.wall_ms

    def monotonic(self) -> float:
        """Return the fake monotonic time in seconds."""
        return self.mono

    def sleep(self, seconds: float) -> None:
        """Move the time forward instead of waiting."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move both times forward."""
        self.mono += seconds
        self.wall_ms += round(seconds * 1000)
