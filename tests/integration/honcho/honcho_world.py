"""A Honcho provider on a fake server, and events on their way into it."""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from helpers.providers import service_opening
from helpers.providers.hook_world import HookWorld
from helpers.services.honcho_server import HonchoServer, honcho_server
from memorybus.clock import SYSTEM, Clock
from memorybus_providers.base import MemoryProvider
from memorybus_providers.honcho import HonchoProvider


class World(HookWorld):
    """One instance and its server.

    Attributes:
        server: the fake.
    """

    def __init__(self, server: HonchoServer, provider: MemoryProvider) -> None:
        super().__init__(provider)
        self.server = server

    def writes(self) -> list[str]:
        """Return the paths of the requests that stored messages or conclusions."""
        ends = ("/messages", "/conclusions")
        return [path for method, path in self.server.asked if path.endswith(ends)]


@contextmanager
def honcho_world(home: Path, clock: Clock = SYSTEM, **options: Any) -> Iterator[World]:
    """Open an instance on a server of its own."""
    with honcho_server() as server, opened(home, server.url, clock, **options) as provider:
        yield World(server, provider)


def opened(
    home: Path, url: str, clock: Clock = SYSTEM, **options: Any
) -> AbstractContextManager[HonchoProvider]:
    """Open an instance on a server."""
    said = {"base_url": url, **options}
    return service_opening.opened(HonchoProvider, home, clock, **said)


def unused_port() -> int:
    """Return a port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
