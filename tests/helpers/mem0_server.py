"""A loopback stand-in for a self-hosted Mem0 server: stores, searches, and fails when told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Mem0Server(ThreadingHTTPServer):
    """What it holds, and what it answers.

    Attributes:
        stored: the bodies of ``POST /memories``.
        status: what it answers to them.
        slow: seconds before it does.
    """

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stored: list[dict[str, Any]] = []
        self.status = 200
        self.slow = 0.0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Mem0Server

    def do_POST(self) -> None:
        """Store or search."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/search":
            return self._answer(200, self._found(body["filters"]["user_id"]))
        threading.Event().wait(self.server.slow)
        if self.server.status == 200:
            self.server.stored.append(body)
        return self._answer(self.server.status, {"results": []})

    def _found(self, user: str) -> dict[str, Any]:
        mine = [one for one in self.server.stored if one["user_id"] == user]
        texts = [one["messages"][0]["content"] for one in mine]
        return {"results": [{"id": str(i), "memory": text} for i, text in enumerate(texts)]}

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def mem0_server() -> Iterator[Mem0Server]:
    """Serve while the block runs."""
    with Mem0Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(5)
