"""A fake of services that take one POST per write: it keeps what it took, refuses, loses answers.

What makes it Hindsight, Supermemory, RetainDB or OpenViking are the paths that count as writes and
the answers to the others, as the plugins and their packages ask for them.
"""

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from helpers.services.fake_http import FailingServer, FakeHandler, serving


class PostedServer(FailingServer):
    """What it took.

    Attributes:
        posted: path and body of each write that was stored.
    """

    def __init__(self, writes: str, answers: Mapping[str, Any]) -> None:
        super().__init__(_Handler)
        self.writes = re.compile(writes)
        self.answers = answers
        self.posted: list[tuple[str, Any]] = []

    def copies(self, text: str) -> int:
        """Count the writes in which a text stands."""
        return sum(text in json.dumps(body) for _, body in self.posted)


class _Handler(FakeHandler):
    server: PostedServer

    def do_GET(self) -> None:
        """Answer what is known of the path."""
        self.tell(200, self._known())

    def do_POST(self) -> None:
        """Take a write, or answer what is known of the path."""
        body = json.loads(self.body() or b"null")
        server = self.server
        with server.lock:
            if server.writes.search(self.path) is None:
                return self.tell(200, self._known())
            if server.refuse:
                server.refuse -= 1
                return self.tell(503, {"detail": "the fake is told to refuse"})
            server.posted.append((self.path, body))
            if server.lose:
                server.lose -= 1
                self.close_connection = True
                return None
        return self.tell(200, self._known())

    def _known(self) -> Any:
        found = (value for path, value in self.server.answers.items() if path in self.path)
        return next(found, {})


def posted_server(
    writes: str, answers: Mapping[str, Any] | None = None
) -> AbstractContextManager[PostedServer]:
    """Serve while the block runs.

    Args:
        writes: a regular expression that finds the paths of writes.
        answers: by a part of the path, what is answered; ``{}`` to all else.
    """
    return serving(PostedServer(writes, answers or {}))
