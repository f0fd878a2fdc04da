"""``memorybus serve --api`` and ``memorybus key`` as processes: kills, MCP over HTTP, the keys."""

import json
import re
import resource
import socket
import time
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.commands import run_command
from helpers.processes.processes import Child, Spawn
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.stories.published import envelopes
from helpers.stories.scenario import environ, patient, wait_applied, worker
from helpers.web.gateway import Api, make_key, turn
from memorybus.config.settings import Settings
from memorybus.health.metrics_server import Address
from memorybus_console.web.serving import REQUEST_SECONDS, open_listener

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    return patient(make_settings(url=redis_url, providers=("holographic",), partitions=2))


def serve(spawn: Spawn, settings: Settings, *words: str) -> tuple[Child, Api]:
    """Start the server, and return it with one who calls it."""
    command = ("-m", "memorybus", "serve", "--api", "--port", "0", "--json", *words)
    child = spawn(*command, env=environ(settings))
    child.wait_output('"url"')
    line = next(text for text in child.output().splitlines() if '"url"' in text)
    return child, Api(re.sub(r"^http://|/v1$", "", json.loads(line)["api"]))


def test_an_accepted_event_survives_a_kill_while_redis_is_away(spawn, make_redis, make_settings):
    """A turn that was answered with 202 reaches the log after kill -9 of the gateway (G1)."""
    server = make_redis()
    settings = patient(make_settings(url=server.url, providers=("holographic",), partitions=2))
    key = make_key(settings, "ann")
    child, api = serve(spawn, settings)
    api.key = key
    assert api.post("/events", {"events": [turn("s", "ann", "First.")]}).status == 202
    server.stop()
    accepted = api.post("/events", {"events": [turn("s", "ann", "Second.")]})
    assert (accepted.status, accepted.body["receipts"][0]["level"]) == (202, "spooled")
    child.kill()
    server.restart()
    worker(spawn, settings)
    wait_until(lambda: texts(settings) == ["First.", "Second."], "both turns are logged")


def texts(settings: Settings) -> list[str]:
    """Return what people said in the log, in the order of their ids."""
    said = [(one.id, getattr(one.event, "user", "")) for one in envelopes(settings)]
    return [text for _, text in sorted(said) if text]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no limit for another process here")
def test_connections_that_send_no_request_keep_nobody_out(spawn, settings):
    """Among 1,000 silent connections and unfinished heads callers are answered; all are closed."""
    child, api = serve(spawn, settings)
    resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (512, 512))
    host, port = api.address.rsplit(":", 1)
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(1_000)
        ]
        for each in silent[::2]:
            with suppress(OSError):  # the server has closed the older ones
                each.sendall(b"GET /v1/health HTTP/1.1\r\nx-slow: ")
        began = time.monotonic()
        assert {api.get("/health").status for _ in range(10)} == {200}
        assert time.monotonic() - began < REQUEST_SECONDS
        for each in silent:
            each.settimeout(REQUEST_SECONDS + MARGIN)
            with suppress(ConnectionResetError):
                assert each.recv(1) == b""


def test_keys_are_made_listed_and_revoked(spawn, settings):
    """A key works until it is revoked; only its digest is kept."""
    environment = environ(settings)
    made = run_command(environment, "key", "create", "--user", "ann", "--json")
    key = json.loads(made.stdout)
    _, api = serve(spawn, settings)
    api.key = key["token"]
    assert api.get("/tools").status == 200
    listed = run_command(environment, "key", "list", "--json")
    assert [one["id"] for one in json.loads(listed.stdout)] == [key["id"]]
    assert key["token"].rpartition("_")[2] not in listed.stdout
    assert run_command(environment, "key", "revoke", key["id"]).returncode == 0
    assert api.get("/tools").status == 401
    assert run_command(environment, "key", "revoke", key["id"]).returncode == 2


def test_others_are_served_with_keys_only(settings):
    """Without a key the server does not listen where others reach it, and names the command."""
    environment = environ(settings) | {"MEMORYBUS_PAGE_PROXY_HEADER": "x-user"}
    words = ("serve", "--api", "--host", "0.0.0.0", "--port", "0")
    refused = run_command(environment, *words)
    assert refused.returncode == 2
    assert "memorybus key create" in refused.stderr


def test_a_host_uses_mcp_over_http(spawn, settings, redis_client):
    """What a host remembers by its key another request with that key recalls, and no other key.

    A key that may not recall and publish does neither by MCP.
    """
    anyio = pytest.importorskip("anyio", reason="the extra mcp is not installed")
    mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
    http = pytest.importorskip("mcp.client.streamable_http")
    httpx = pytest.importorskip("httpx2", reason="the extra mcp is not installed")
    worker(spawn, settings, jobs=1)
    ann, bob = make_key(settings, "ann"), make_key(settings, "bob")
    _, api = serve(spawn, settings)

    async def call(key: str, tool: str, **arguments: Any) -> str:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(headers=headers, timeout=30) as client:
            transport = http.streamable_http_client(f"http://{api.address}/mcp", http_client=client)
            async with mcp.Client(transport) as host:
                result = await host.call_tool(tool, arguments)
                return str(result.content[0].text)

    async def remember() -> str:
        return await call(ann, "remember", text="The brass key is under the pot.")

    async def recall(key: str) -> str:
        return await call(key, "recall", query="Where is the brass key?")

    assert anyio.run(remember) == "Remembered."
    wait_applied(redis_client, settings, "holographic")
    assert "under the pot" in anyio.run(recall, ann)
    assert anyio.run(recall, bob) == "Memory has nothing about this."
    limited = make_key(settings, "ann", may=("tools",))
    for method, key, status in (("POST", "", 401), ("POST", limited, 403), ("GET", ann, 405)):
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        headers |= {"authorization": f"Bearer {key}"} if key else {}
        with closing(HTTPConnection(api.address, timeout=30)) as connection:
            connection.request(method, "/mcp", b"{}", headers)
            assert connection.getresponse().status == status, method


def test_a_response_is_sent_at_once():
    """No part of a response waits for the acknowledgement of the part before it (Nagle)."""
    with open_listener(Address("127.0.0.1", 0)) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
