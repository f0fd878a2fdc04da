"""Fakes of HTTP services whose requests fail as told, each by its path."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal, NamedTuple

from helpers.services.fake_http import FailingServer, FakeHandler


class Fault(NamedTuple):
    """How a request fails.

    Attributes:
        path: what the request's path ends with.
        kind: a status that is answered instead; ``lose``: it is done, and the connection is cut;
            ``half``: it is done, and half of the answer comes; ``late``: it is done, and the answer
            waits until the server ends; ``strange``: it is done, and the answer is another one.
        headers: of a status.
        body: of a status.
        method: the request's, if not any.
    """

    path: str
    kind: int | Literal["lose", "half", "late", "strange"]
    headers: Mapping[str, str] = {}
    body: Mapping[str, Any] = {"detail": "the fake is told to fail"}
    method: str = ""

    def fits(self, method: str, path: str) -> bool:
        return path.endswith(self.path) and self.method in ("", method)


class FaultyServer(FailingServer):
    """One that is told which requests fail, and keeps what was asked.

    Attributes:
        asked: method and path of every request.
        bodies: the body of every request.
        keys: what every request was authorised with.
        faults: how the next requests fail to which they fit, each once.
        meet: where requests wait for each other before they are answered, if anywhere.
        ended: set when the server ends.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(handler)
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.keys: list[str] = []
        self.faults: list[Fault] = []
        self.meet: threading.Barrier | None = None
        self.ended = threading.Event()

    def server_close(self) -> None:
        """Let go of those that wait for a late answer."""
        self.ended.set()
        super().server_close()

    def fault_of(self, method: str, path: str) -> Fault | None:
        """Return how this request fails, and take that off the list."""
        found = next((one for one in self.faults if one.fits(method, path)), None)
        if found:
            self.faults.remove(found)
        return found


class Refused(Exception):
    """What was asked is not done: a status, and what is answered."""


class Lost(Exception):
    """What was asked is done, and nobody is told."""


class FaultyHandler(FakeHandler):
    """Serves `answer`, and fails as told."""

    server: FaultyServer

    def answer(self, method: str, body: Any) -> Any:
        """Return the answer to a request; the server's lock is held.

        Raises:
            Refused: nothing is done.
            Lost: it is done, and the connection is cut.
        """
        raise NotImplementedError

    def serve(self, method: str) -> None:
        server, path, body = self.server, self.path.split("?")[0], self._json()
        if server.meet:
            server.meet.wait()
        with server.lock:
            server.asked.append((method, path))
            server.bodies.append(body)
            keys = (self.headers.get(name, "") for name in ("Authorization", "X-API-Key"))
            server.keys.append(next(filter(None, keys), ""))
            fault = server.fault_of(method, path)
            if fault and isinstance(fault.kind, int):
                self._say(fault.kind, json.dumps(fault.body).encode(), fault.headers)
                return
            try:
                status, value = 200, self.answer(method, body)
            except Refused as refusal:
                status, value = refusal.args
            except Lost:
                self.close_connection = True
                return
        if fault:
            self._fail(fault, json.dumps(value).encode())
        else:
            self.tell(status, value)

    def _json(self) -> Any:
        raw = self.body()
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        return json.loads(raw) if raw and is_json else None

    def _say(self, status: int, body: bytes, headers: Mapping[str, str], sent: int = -1) -> None:
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body if sent < 0 else body[:sent])

    def _fail(self, fault: Fault, answer: bytes) -> None:
        self.close_connection = True
        if fault.kind == "late":
            self.server.ended.wait(30)
        if fault.kind == "half":
            self._say(200, answer, {"Content-Type": "application/json"}, len(answer) // 2)
        if fault.kind == "strange":
            self.tell(200, "what is this?")
