"""The embedded server of a command, if no URL is configured."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memorybus.config.settings import Settings
from memorybus.embedded.server import EmbeddedRedis, RunningServer
from memorybus.processes import signals

_CONNECT_SECONDS = 1.0  # seconds for which a busy server may leave a connection unanswered


class LocalServer:
    """Starts, stops and revives the embedded server; does nothing if a URL is configured.

    Attributes:
        embedded: the server; None if a URL is configured.
    """

    def __init__(self, settings: Settings) -> None:
        self.embedded = None if settings.url else EmbeddedRedis(settings)
        self.started: RunningServer | None = None  # the result of its last start; None before

    def start(self) -> None:
        """Start it; Ctrl-C soon ends a start that still waits."""
        if self.embedded is not None:
            with signals.deferred(self.embedded.give_up):
                self.started = self.embedded.start()

    def stop(self) -> None:
        """Stop it completely, even if a signal arrives meanwhile."""
        if self.embedded is not None:
            with signals.deferred():
                self.embedded.stop()

    def revive(self) -> bool:
        """Start the server again if it has ended; return whether that was needed."""
        if self.embedded is None or is_listening(self.embedded.socket):
            return False
        self.stop()
        self.start()
        return True


@contextmanager
def running_server(settings: Settings) -> Iterator[LocalServer]:
    """Run the embedded server, if no URL is configured, while the block lasts.

    No signal interrupts its start or its stop half-way.

    Raises:
        EmbeddedError: it cannot be started.
    """
    server = LocalServer(settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def is_listening(path: Path) -> bool:
    """Return whether a process listens on a unix socket; a busy one still does."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_CONNECT_SECONDS)
        try:
            client.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True
        return True
