"""One who calls the gateway, and the keys that they have."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import msgspec
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.ids import new_id, new_secret
from memorybus_console.gateway.keys import RIGHTS, ApiKey, KeyRing

from helpers.web.pages import served


class Reply(msgspec.Struct, frozen=True):
    """What the gateway answered; `body` is decoded if it is JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Api:
    """One who calls the gateway.

    Attributes:
        address: ``HOST:PORT``.
        key: what they send as their key; "" for none.
    """

    def __init__(self, address: str, key: str = "") -> None:
        self.address = address
        self.key = key

    def get(self, path: str, **headers: str) -> Reply:
        """Ask for a path below ``/v1``; headers' names have underscores."""
        return self.send("GET", path, None, headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        """Send JSON."""
        return self.send("POST", path, body or {}, headers)

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request; bytes are sent as they are."""
        named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        if self.key:
            named.setdefault("authorization", f"Bearer {self.key}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            named.setdefault("content-type", "application/json")
        with closing(http.client.HTTPConnection(self.address, timeout=60)) as connection:
            connection.request(method, f"/v1{path}", body, named)
            response = connection.getresponse()
            data = response.read()
        kind = response.getheader("content-type", "")
        decoded = json.loads(data) if "json" in kind and "ndjson" not in kind else data.decode()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, headers, decoded)


@contextmanager
def gateway(settings: Settings, *origins: str) -> Iterator[Api]:
    """Serve the gateway while the block runs, to one without a key."""
    with served(settings, origins) as visitor:
        yield Api(visitor.address)


def key_ring(settings: Settings) -> "closing[KeyRing]":
    """Open the keys of a bus."""
    return closing(KeyRing(settings, SYSTEM))


def make_key(settings: Settings, *users: str, **fields: Any) -> str:
    """Make a key for these people with all rights, and return it."""
    values = {"agent": settings.agent, "may": RIGHTS} | fields
    with key_ring(settings) as ring:
        return ring.create(ApiKey(id=new_id()[-12:], users=users, **values), new_secret).token


def turn(session: str, user: str, text: str, **fields: Any) -> dict[str, Any]:
    """Return a turn as the gateway takes it."""
    event = {"type": "TurnCompleted", "user": text, "assistant": "Noted."}
    return {"session": session, "user": user, "event": event} | fields
