"""A loopback stand-in for a self-hosted Mem0 server: stores, searches, and fails when told."""

import json
import threading
from contextlib import AbstractContextManager
from typing import Any

from helpers.services.fake_http import FakeHandler, FakeServer, serving


class Mem0Server(FakeServer):
    """What it holds, and what it answers.

    Attributes:
        stored: the bodies of ``POST /memories``.
        status: what it answers to them.
        slow: seconds before it does.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.stored: list[dict[str, Any]] = []
        self.status = 200
        self.slow = 0.0


class _Handler(FakeHandler):
    server: Mem0Server

    def do_POST(self) -> None:
        body = json.loads(self.body())
        if self.path == "/search":
            return self.tell(200, self._found(body["filters"]["user_id"]))
        threading.Event().wait(self.server.slow)
        if self.server.status == 200:
            self.server.stored.append(body)
        return self.tell(self.server.status, {"results": []})

    def _found(self, user: str) -> dict[str, Any]:
        mine = [one for one in self.server.stored if one["user_id"] == user]
        texts = [one["messages"][0]["content"] for one in mine]
        return {"results": [{"id": str(i), "memory": text} for i, text in enumerate(texts)]}


def mem0_server() -> AbstractContextManager[Mem0Server]:
    """Serve while the block runs."""
    return serving(Mem0Server())
