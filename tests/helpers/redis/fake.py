"""A Redis within the process, for the tests of `make quick` that need no more than its commands."""

from typing import Any

import fakeredis


class FakeServer:
    """What tests need of the shared server; it can be neither killed nor reached from outside."""

    def __init__(self) -> None:
        self._server = fakeredis.FakeServer(version=(7, 0))

    def client(self, **options: Any) -> fakeredis.FakeRedis:
        """Return a client."""
        return fakeredis.FakeRedis(server=self._server, **options)
