"""Reports a service's state to systemd (``Type=notify``, ``WatchdogSec=``) and to health paths."""

import os
import socket
import threading
from contextlib import suppress
from typing import Self

from memorybus.clock import Clock
from memorybus.config.settings import read_variable


class ServiceManager:
    """Reports to the service manager of this process; without an address it does nothing."""

    def __init__(self, address: str, every: float, clock: Clock) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._pause = every / 2
        self._clock = clock
        self._next = float("-inf")

    @classmethod
    def of_environment(cls, clock: Clock) -> Self:
        """Return the manager that systemd names in the environment, if it watches this process."""
        watched, every = read_variable("WATCHDOG_PID"), read_variable("WATCHDOG_USEC")
        ours = watched in ("", str(os.getpid())) and every.isdigit()
        return cls(read_variable("NOTIFY_SOCKET"), int(every) / 1e6 if ours else 0.0, clock)

    def note_ready(self) -> None:
        self._send("READY=1")

    def note_end(self) -> None:
        self._send("STOPPING=1")

    def note_turn(self) -> None:
        """Send a sign of life, if it is due: without one, the manager restarts the service."""
        now = self._clock.monotonic()
        if self._pause and now >= self._next:
            self._next = now + self._pause
            self._send("WATCHDOG=1")

    def _send(self, what: str) -> None:
        """Send a message; it is no error if the manager does not listen."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto(what.encode(), self._address)


STUCK_SECONDS = 30.0
"""Seconds without a turn after which the loop counts as stuck: a turn takes far less."""


class Liveness:
    """Knows when the main loop of this process last turned; any thread may ask."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard = clock.monotonic()
        self._ready = threading.Event()

    def note_ready(self) -> None:
        self._ready.set()

    def note_turn(self) -> None:
        self._heard = self._clock.monotonic()

    def note_end(self) -> None:
        self._ready.clear()

    def lives(self) -> bool:
        """Return whether the loop has turned within `STUCK_SECONDS`."""
        return self._clock.monotonic() - self._heard <= STUCK_SECONDS

    def is_ready(self) -> bool:
        """Return whether everything has started, and the end has not begun."""
        return self._ready.is_set()
