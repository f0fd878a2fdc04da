"""A fake of services that take one POST per write: it keeps what it took, refuses, loses answers.

What makes it Hindsight, Supermemory, RetainDB or OpenViking are the paths that count as writes and
the answers to the others, as the plugins and their packages ask for them.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class PostedServer(ThreadingHTTPServer):
    """What it took, and how it fails.

    Attributes:
        posted: path and body of each write that was stored.
        refuse: so many of the next writes are answered 503 before anything is stored.
        lose: so many of the next writes are stored, and the connection is cut instead of an answer.
    """

    daemon_threads = True

    def __init__(self, writes: str, answers: Mapping[str, Any]) -> None:
        """Listen on a free port; see `posted_server`."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.writes = re.compile(writes)
        self.answers = answers
        self.posted: list[tuple[str, Any]] = []
        self.refuse = 0
        self.lose = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def copies(self, text: str) -> int:
        """Count the writes in which a text stands."""
        return sum(text in json.dumps(body) for _, body in self.posted)


class _Handler(BaseHTTPRequestHandler):
    server: PostedServer

    def do_GET(self) -> None:
        """Answer what is known of the path."""
        self._told(200, self._known())

    def do_POST(self) -> None:
        """Take a write, or answer what is known of the path."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        server = self.server
        with server.lock:
            if server.writes.search(self.path) is None:
                return self._told(200, self._known())
            if server.refuse:
                server.refuse -= 1
                return self._told(503, {"detail": "the fake is told to refuse"})
            server.posted.append((self.path, body))
            if server.lose:
                server.lose -= 1
                self.close_connection = True
                return None
        return self._told(200, self._known())

    def _known(self) -> Any:
        found = (value for path, value in self.server.answers.items() if path in self.path)
        return next(found, {})

    def _told(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def posted_server(writes: str, answers: Mapping[str, Any] | None = None) -> Iterator[PostedServer]:
    """Serve while the block runs.

    Args:
        writes: a regular expression that finds the paths of writes.
        answers: by a part of the path, what is answered; ``{}`` to all else.
    """
    with PostedServer(writes, answers or {}) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(5)
