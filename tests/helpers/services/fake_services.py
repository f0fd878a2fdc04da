"""Fake memory services on loopback: what Hermes's plugins, with their real SDKs, write to them.

Each knows the few routes that its plugin uses and keeps, of everything written, under which names
it was filed and the text.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from urllib.parse import unquote

from helpers.services import fake_http


class Filed(NamedTuple):
    """One text and the names it was filed under."""

    names: tuple[str, ...]
    text: str


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


Service = Callable[[Asked], tuple[Any, list[Filed]]]
"""Returns the answer to a request, and what it files."""


class FakeService(fake_http.FakeServer):
    """Serves one service, and keeps what is filed.

    Attributes:
        filed: in order.
    """

    def __init__(self, service: Service) -> None:
        super().__init__(_Handler)
        self.service = service
        self.filed: list[Filed] = []


class _Handler(fake_http.FakeHandler):
    server: FakeService

    def serve(self, method: str) -> None:
        """Answer, and keep what is filed."""
        raw = self.body()
        path = unquote(self.path.split("?")[0])
        asked = Asked(method, path, self.headers, json.loads(raw) if raw else {})
        answer, filed = self.server.service(asked)
        self.server.filed.extend(filed)
        self.tell(200, answer)


def serving(service: Service) -> AbstractContextManager[FakeService]:
    """Serve while the block runs."""
    return fake_http.serving(FakeService(service))


def mem0(asked: Asked) -> tuple[Any, list[Filed]]:
    """Serve as a self-hosted Mem0 server does."""
    body = asked.body
    if asked.path != "/memories":
        return {"results": []}, []
    channel = str((body.get("metadata") or {}).get("channel", ""))
    return {"results": []}, [
        Filed((body["user_id"], body["agent_id"], channel), body["messages"][0]["content"])
    ]


def retaindb(asked: Asked) -> tuple[Any, list[Filed]]:
    """Serve as RetainDB's API does."""
    body = asked.body
    if asked.method == "GET" or not asked.path.startswith("/v1/memory"):
        return {}, []
    names = (body.get("project", ""), body.get("user_id", ""), body.get("session_id", ""))
    if asked.path == "/v1/memory/ingest/session":
        return {}, [Filed(names, body["messages"][0]["content"])]
    return {}, [Filed(names, body["content"])] if asked.path == "/v1/memory" else []


def hindsight(asked: Asked) -> tuple[Any, list[Filed]]:
    """Serve as Hindsight's API of version 0.6.1 does."""
    if asked.path == "/version":
        return {"api_version": "0.6.1", "features": {}}, []
    parts = asked.path.strip("/").split("/")
    if parts[:3] != ["v1", "default", "banks"] or parts[4:] != ["memories"]:
        return {"results": []}, []
    items = asked.body["items"]
    answer = {"success": True, "bank_id": parts[3], "items_count": len(items), "async": True}
    return answer, [_retained(parts[3], item) for item in items]


def _retained(bank: str, item: Mapping[str, Any]) -> Filed:
    told = {n: v for n, v in item["metadata"].items() if n != "retained_at"}
    names = [f"{name}={value}" for name, value in sorted(told.items())]
    turns = json.loads(item["content"])
    text = "\n".join(message["content"] for turn in turns for message in turn)
    return Filed((bank, item["document_id"], *sorted(item["tags"]), *names), text)


def supermemory(asked: Asked) -> tuple[Any, list[Filed]]:
    """Serve as Supermemory's API does."""
    body = asked.body
    if asked.path == "/v3/documents":
        filed = Filed(tuple(body["containerTags"]), body["content"])
        return {"id": "d", "status": "queued"}, [filed]
    if asked.path == "/v4/conversations":
        names = (*body["containerTags"], body["conversationId"])
        text = "\n".join(message["content"] for message in body["messages"])
        return {"id": "c"}, [Filed(names, text)]
    return {"profile": {"static": [], "dynamic": []}, "results": []}, []


def openviking(asked: Asked) -> tuple[Any, list[Filed]]:
    """Serve as an OpenViking server does that asks for no key."""
    tenant = ("Account", "User", "Actor-Peer")
    names = tuple(asked.headers.get(f"X-OpenViking-{name}", "") for name in tenant)
    if asked.path == "/health":
        return {"healthy": True}, []
    if asked.path.endswith("/messages/batch"):
        session = asked.path.split("/")[-3]
        said = [part["text"] for message in asked.body["messages"] for part in message["parts"]]
        return {"result": {}}, [Filed((*names, session), "\n".join(said))]
    if asked.path == "/api/v1/content/write":
        return {"result": {}}, [Filed(names, asked.body["content"])]
    return {"result": {"pending_tokens": 0}}, []
