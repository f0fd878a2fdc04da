"""A fake HTTP service in trouble: writes that are refused, lost, half answered or not answered."""

import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from helpers.services.fake_http import FakeHandler, FakeServer

Trouble = int | Literal["lost", "half", "slow", "strange"]
"""What befalls a write: a status instead of it; or it is stored and the connection is cut, half an
answer comes, none comes while the server's gate is closed, or one that is no JSON."""


class TroubledServer(FakeServer):
    """One whose next writes fail as told.

    Attributes:
        troubles: what befalls the next writes, in order.
        retry_after: the header of refusals; "" for none.
        keys: the ``Authorization`` and ``X-API-Key`` headers that came.
        gate: an answer that is slow waits for it.
        lock: held while a request is served.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(handler)
        self.troubles: list[Trouble] = []
        self.retry_after = ""
        self.keys: list[str | None] = []
        self.gate = threading.Event()
        self.lock = threading.Lock()


class TroubledHandler(FakeHandler):
    """Serves `answer`, and fails at writes as told."""

    server: TroubledServer

    def answer(self, method: str, body: bytes) -> tuple[int, Any]:
        """Return status and value for a request; the server's lock is held."""
        raise NotImplementedError

    def writes(self, method: str) -> bool:
        """Say whether the request is a write that may fail."""
        raise NotImplementedError

    def serve(self, method: str) -> None:
        """Answer, or fail as told."""
        body = self.body()
        with self.server.lock:
            headers = (self.headers.get(name) for name in ("Authorization", "X-API-Key"))
            self.server.keys.append(next(filter(None, headers), None))
            troubles = self.server.troubles
            trouble = troubles.pop(0) if troubles and self.writes(method) else None
            if isinstance(trouble, int):
                return self._refuse(trouble, body)
            status, value = self.answer(method, body)
        return self._troubled(trouble, status, value)

    def _refuse(self, status: int, body: bytes) -> None:
        """Refuse as servers do that repeat the key, or what they were sent, in what they say."""
        said: Any = f"told to refuse {self.server.keys[-1]}"
        if status == 422:
            said = [{"msg": "told to refuse", "input": body.decode()}]
        told = json.dumps({"detail": said}).encode()
        self.send_response(status)
        if self.server.retry_after:
            self.send_header("Retry-After", self.server.retry_after)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def _troubled(self, trouble: Trouble | None, status: int, value: Any) -> None:
        if trouble == "lost":
            self.close_connection = True
        elif trouble == "half":
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "4000")
            self.end_headers()
            self.wfile.write(b'{"success": tr')
            self.close_connection = True
        elif trouble == "strange":
            self.tell(status, "what is this?")
        else:
            if trouble == "slow":
                self.server.gate.wait(30)
            self.tell(status, value)
