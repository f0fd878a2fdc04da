"""Tells systemd that a service is ready, lives, and ends (``Type=notify``, ``WatchdogSec=``)."""

import os
import socket
from contextlib import suppress
from typing import Self

from memorybus.clock import Clock
from memorybus.config.settings import read_variable


class ServiceManager:
    """Tells whoever manages this process; nobody, if no address is given.

    Args:
        address: a datagram socket's path; one that begins with ``@`` has no file.
        every: seconds within which it wants to hear that we live; 0 if it does not.
        clock: time.
    """

    def __init__(self, address: str, every: float, clock: Clock) -> None:
        """Tell nothing yet."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._pause = every / 2
        self._clock = clock
        self._next = float("-inf")

    @classmethod
    def of_environment(cls, clock: Clock) -> Self:
        """Return the one that systemd names in the environment; it may watch another process."""
        watched, every = read_variable("WATCHDOG_PID"), read_variable("WATCHDOG_USEC")
        ours = watched in ("", str(os.getpid())) and every.isdigit()
        return cls(read_variable("NOTIFY_SOCKET"), int(every) / 1e6 if ours else 0.0, clock)

    def note_ready(self) -> None:
        """Say that the service works."""
        self._send("READY=1")

    def note_end(self) -> None:
        """Say that it ends."""
        self._send("STOPPING=1")

    def note_turn(self) -> None:
        """Say that it lives, if it is time: who does not say so in time is started again."""
        now = self._clock.monotonic()
        if self._pause and now >= self._next:
            self._next = now + self._pause
            self._send("WATCHDOG=1")

    def _send(self, what: str) -> None:
        """Send it; a manager that does not listen is no reason to fail."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto(what.encode(), self._address)
