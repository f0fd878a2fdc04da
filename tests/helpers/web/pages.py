"""The page of operators, served from a thread of this process, and one who asks it."""

import asyncio
import http.client
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import uvicorn
from memorybus.config.settings import Settings
from memorybus.health.metrics_server import Address
from memorybus_console.gateway.opening import open_gateway
from memorybus_console.web import serving

from helpers.processes.waiting import wait_until

TOKEN = "a token of these tests"
HASH = (
    "$argon2id$v=19$m=8,t=1,p=1$EU3nYz6uH0hdxrutV2bk+w$QVjakjbv28gP2Q0ePR7+eAkHyd9RrcF1/sJziaZ2JrQ"
)
"""Its hash, of the least cost."""


class Answer(msgspec.Struct, frozen=True):
    """What the page answered."""

    status: int
    headers: Mapping[str, str]
    text: str


class Visitor:
    """One who asks, with a cookie once they have signed in.

    Attributes:
        address: ``HOST:PORT`` of the page.
        headers: what they send with each request.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.headers: dict[str, str] = {"Accept": "text/html"}

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a path; headers' names have underscores."""
        return self._ask("GET", path, None, headers)

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """Send a form."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urllib.parse.urlencode(fields), kind | headers)

    def sign_in(self, name: str, token: str = TOKEN) -> Answer:
        """Sign in, and keep the cookie."""
        answer = self.post("/signin", {"name": name, "token": token})
        if "set-cookie" in answer.headers:
            self.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def proof(self) -> str:
        """Return what forms hold that are made for this visitor."""
        return self.get("/").text.partition('name="proof" value="')[2].partition('"')[0]

    def _ask(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self.address, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, {**self.headers, **named})
            found = connection.getresponse()
            text = found.read().decode()
        finally:
            connection.close()
        return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, text)


@contextmanager
def served(settings: Settings, origins: Sequence[str] | None = None) -> Iterator[Visitor]:
    """Serve the page of a bus while the block runs, and the gateway if origins are given."""
    site = serving.build_site(settings)
    with ExitStack() as stack:
        gateway = None
        if origins is not None:
            opened = open_gateway(settings, site.ends, origins, on_loopback=True)
            gateway = stack.enter_context(opened)
        yield from _served(serving.build_server(site, gateway))


def _served(server: uvicorn.Server) -> Iterator[Visitor]:
    listener = serving.open_listener(Address("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        wait_until(lambda: server.started, "the page is served")
        yield Visitor("{}:{}".format(*listener.getsockname()))
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
        assert not thread.is_alive()


@contextmanager
def looked_at(settings: Settings) -> Iterator[Visitor]:
    """Serve the page to a person who has shown its token."""
    with served(msgspec.structs.replace(settings, page_token=HASH)) as visitor:
        visitor.headers["Authorization"] = f"Bearer {TOKEN}"
        yield visitor
