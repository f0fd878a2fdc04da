"""What fakes of HTTP services have in common: a port on loopback, JSON, failures as told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

S = TypeVar("S", bound=ThreadingHTTPServer)


class FakeServer(ThreadingHTTPServer):
    """A server on a free port."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class FailingServer(FakeServer):
    """One whose handler fails as it is told.

    Attributes:
        refuse: so many of the next writes are answered 503 before anything is stored.
        lose: so many of the next writes are stored, and the connection is cut instead of an answer.
        lock: held by the handler while it looks and stores.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(handler)
        self.refuse = 0
        self.lose = 0
        self.lock = threading.Lock()


class FakeHandler(BaseHTTPRequestHandler):
    """Reads bodies, and answers in JSON."""

    def serve(self, method: str) -> None:
        """Answer a request; a fake of one service defines it, or the verbs that it knows."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.serve("GET")

    def do_POST(self) -> None:
        """Write, or ask with a body."""
        self.serve("POST")

    def do_PUT(self) -> None:
        self.serve("PUT")

    def do_DELETE(self) -> None:
        self.serve("DELETE")

    def body(self) -> bytes:
        """Return the request's body."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def tell(self, status: int, value: Any) -> None:
        """Answer; None is no content."""
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(204 if value is None else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(server: S) -> Iterator[S]:
    """Serve while the block runs."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(5)
