"""A fake Honcho server on loopback: the routes of API v3 that honcho-ai and Hermes's plugin use.

It derives nothing: a peer's representation is what that peer has said in the workspace, a session's
summary is what was said in it. So whatever falls together in Honcho is seen to fall together here.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from helpers.services.fake_http import FailingServer, FakeHandler, serving

_BORN = "2026-01-01T00:00:00Z"


class Said(NamedTuple):
    """One stored message.

    Attributes:
        workspace: where it lies.
        session: in which of the workspace's sessions.
        peer: who said it.
        content: the text.
        metadata: what came with it.
    """

    workspace: str
    session: str
    peer: str
    content: str
    metadata: Mapping[str, Any]


class Conclusion(NamedTuple):
    """One stored conclusion: what `observer` holds of `observed`."""

    workspace: str
    session: str
    observer: str
    observed: str
    content: str


class HonchoServer(FailingServer):
    """What it holds; of messages it may refuse writes, and lose answers.

    Attributes:
        messages: the stored messages, in order.
        conclusions: the stored conclusions, in order.
        uploads: the paths of file uploads; the files themselves are not kept.
        members: the peers of each (workspace, session).
        asked: method and path of every request.
    """

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(_Handler)
        self.messages: list[Said] = []
        self.conclusions: list[Conclusion] = []
        self.uploads: list[str] = []
        self.members: dict[tuple[str, str], dict[str, Any]] = {}
        self.cards: dict[tuple[str, str, str], list[str]] = {}
        self.asked: list[tuple[str, str]] = []

    def contents(self, peer: str | None = None) -> list[str]:
        """Return the texts of all messages, or of one peer's, in the order stored."""
        return [one.content for one in self.messages if peer in (None, one.peer)]

    def sessions(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """Return who said what in each (workspace, session)."""
        found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for one in self.messages:
            found.setdefault((one.workspace, one.session), []).append((one.peer, one.content))
        return found


class _Request(NamedTuple):
    method: str
    parts: tuple[str, ...]
    query: Mapping[str, str]
    body: Any


class _Lost(Exception):
    """What was asked is done, and nobody is told."""


class _Refused(Exception):
    """The server is not available for this."""


class _Unknown(Exception):
    """There is no such route."""


class _Handler(FakeHandler):
    server: HonchoServer

    def do_GET(self) -> None:
        """Read."""
        self._serve("GET")

    def do_POST(self) -> None:
        """Write, or ask with a body."""
        self._serve("POST")

    def do_PUT(self) -> None:
        """Overwrite."""
        self._serve("PUT")

    def do_DELETE(self) -> None:
        """Remove."""
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        address = urlsplit(self.path)
        body = self._json()
        parts = tuple(unquote(one) for one in address.path.strip("/").split("/"))
        request = _Request(method, parts, dict(parse_qsl(address.query)), body)
        with self.server.lock:
            self.server.asked.append((method, address.path))
            try:
                status, value = 200, _answer(self.server, request)
            except _Refused:
                status, value = 503, {"detail": "the fake is told to refuse"}
            except _Unknown:
                status, value = 404, {"detail": f"the fake knows no {method} {address.path}"}
            except _Lost:
                self.close_connection = True
                return
        self.tell(status, value)

    def _json(self) -> Any:
        raw = self.body()
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        return json.loads(raw) if raw and is_json else None


def _answer(server: HonchoServer, request: _Request) -> Any:
    """Return the answer to a request.

    Raises:
        _Lost: it is done, and the answer is lost.
        _Refused: nothing is done.
        _Unknown: there is no such route.
    """
    version, kind, *rest = request.parts
    if (version, kind) != ("v3", "workspaces"):
        raise _Unknown
    if not rest:
        return _thing(request.body["id"])
    workspace, things, name, *below = (*rest, "", "")[: max(3, len(rest))]
    route = (request.method, things, *below[:1], *below[1:][-1:])
    if route not in _ROUTES:
        raise _Unknown
    return _ROUTES[route](server, request, workspace, name)


def _thing(name: str, workspace: str = "") -> dict[str, Any]:
    """Return a workspace, peer or session as the API shows it."""
    return {
        "id": name,
        "workspace_id": workspace,
        "created_at": _BORN,
        "is_active": True,
        "metadata": {},
        "configuration": {},
    }


def _created(_: HonchoServer, request: _Request, workspace: str, __: str) -> Any:
    return _thing(request.body["id"], workspace)


def _join(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    server.members.setdefault((workspace, session), {}).update(request.body)
    return _thing(session, workspace)


def _membership(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    members = server.members.get((workspace, session), {})
    return members.get(request.parts[6], {})


def _store(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    if server.refuse:
        server.refuse -= 1
        raise _Refused
    first = len(server.messages)
    server.messages.extend(
        Said(workspace, session, one["peer_id"], one["content"], one.get("metadata") or {})
        for one in request.body["messages"]
    )
    for one in server.messages[first:]:  # who says something takes part
        server.members.setdefault((workspace, session), {}).setdefault(one.peer, {})
    if server.lose:
        server.lose -= 1
        raise _Lost
    return [_message(server, number) for number in range(first, len(server.messages))]


def _message(server: HonchoServer, number: int) -> dict[str, Any]:
    one = server.messages[number]
    return {
        "id": f"m{number}",
        "content": one.content,
        "peer_id": one.peer,
        "session_id": one.session,
        "workspace_id": one.workspace,
        "metadata": dict(one.metadata),
        "created_at": _BORN,
        "token_count": len(one.content.split()),
    }


def _found(server: HonchoServer, wanted: Callable[[Said], bool]) -> list[dict[str, Any]]:
    return [_message(server, n) for n, one in enumerate(server.messages) if wanted(one)]


def _listed(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    """Answer a page of a session's messages, the newest first unless told otherwise."""
    place, wanted = (workspace, session), _filter(request.body)
    found = _found(server, lambda one: one[:2] == place and wanted(one))
    return _page(found if request.query.get("reverse") == "true" else found[::-1], request)


def _filter(body: Any) -> Callable[[Said], bool]:
    """Return whether a message has the metadata and the peer that are asked for."""
    filters = (body or {}).get("filters") or {}
    metadata, peer = filters.get("metadata") or {}, filters.get("peer_id")
    return lambda one: metadata.items() <= dict(one.metadata).items() and peer in (None, one.peer)


def _page(items: list[dict[str, Any]], request: _Request) -> dict[str, Any]:
    page, size = int(request.query.get("page", "1")), int(request.query.get("size", "50"))
    shown = items[(page - 1) * size : page * size]
    pages = max(1, -(-len(items) // size))
    return {"items": shown, "total": len(items), "page": page, "size": size, "pages": pages}


def _uploaded(server: HonchoServer, request: _Request, *_: str) -> Any:
    server.uploads.append("/".join(request.parts))
    return []


def _session_context(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    place = (workspace, session)
    said = _found(server, lambda one: one[:2] == place)
    text = "\n".join(one["content"] for one in said)
    summary = {
        "content": text,
        "message_id": "m0",
        "summary_type": "short",
        "created_at": _BORN,
        "token_count": len(text.split()),
    }
    target = request.query.get("peer_target", "")
    return {
        "id": session,
        "messages": said,
        "summary": summary if said else None,
        "peer_representation": _representation(server, workspace, target) if target else None,
        "peer_card": None,
    }


def _representation(server: HonchoServer, workspace: str, peer: str) -> str:
    """Return all that a peer has said in a workspace, and all that is concluded of it."""
    place = (workspace, peer)
    said = [one.content for one in server.messages if (one.workspace, one.peer) == place]
    held = server.conclusions
    of_it = [one.content for one in held if (one.workspace, one.observed) == place]
    return "\n".join((*said, *of_it))


def _peer_context(server: HonchoServer, request: _Request, workspace: str, peer: str) -> Any:
    target = request.query.get("target", peer)
    return {
        "peer_id": peer,
        "target_id": target,
        "representation": _representation(server, workspace, target),
        "peer_card": server.cards.get((workspace, peer, target)),
    }


def _peer_text(server: HonchoServer, request: _Request, workspace: str, peer: str) -> Any:
    text = _representation(server, workspace, request.body.get("target") or peer)
    return {"content": text, "representation": text}


def _card(server: HonchoServer, request: _Request, workspace: str, peer: str) -> Any:
    place = (workspace, peer, request.query.get("target", peer))
    if request.method == "PUT":
        server.cards[place] = request.body["peer_card"]
    return {"peer_card": server.cards.get(place)}


def _searched(server: HonchoServer, request: _Request, workspace: str, peer: str) -> Any:
    """Answer the messages of a peer's sessions, or of all, in which one word asked for stands."""
    words = request.body["query"].lower().split()
    viewer = peer or (request.body.get("filters") or {}).get("peer_perspective")

    def wanted(one: Said) -> bool:
        seen = viewer is None or viewer in server.members.get((one.workspace, one.session), {})
        return one.workspace == workspace and seen and any(w in one.content.lower() for w in words)

    return _found(server, wanted)[: request.body.get("limit", 10)]


def _concluded(server: HonchoServer, request: _Request, workspace: str, _: str) -> Any:
    """Store conclusions, or answer those of an observer and an observed."""
    if "conclusions" in request.body:
        first = len(server.conclusions)
        server.conclusions.extend(
            Conclusion(
                workspace,
                one.get("session_id", ""),
                one["observer_id"],
                one["observed_id"],
                one["content"],
            )
            for one in request.body["conclusions"]
        )
        return _conclusions(server)[first:]
    of = request.body["filters"]
    found = [
        shown
        for one, shown in zip(server.conclusions, _conclusions(server), strict=True)
        if (one.workspace, one.observer, one.observed)
        == (workspace, of["observer_id"], of["observed_id"])
    ]
    return found if "query" in request.body else _page(found, request)


def _conclusions(server: HonchoServer) -> list[dict[str, Any]]:
    return [
        {
            "id": f"c{number}",
            "content": one.content,
            "observer_id": one.observer,
            "observed_id": one.observed,
            "session_id": one.session,
            "created_at": _BORN,
        }
        for number, one in enumerate(server.conclusions)
    ]


_ROUTES: Mapping[tuple[str, ...], Callable[[HonchoServer, _Request, str, str], Any]] = {
    ("POST", "peers"): _created,
    ("POST", "peers", "chat"): _peer_text,
    ("POST", "peers", "representation"): _peer_text,
    ("POST", "peers", "search"): _searched,
    ("GET", "peers", "card"): _card,
    ("PUT", "peers", "card"): _card,
    ("GET", "peers", "context"): _peer_context,
    ("POST", "sessions"): _created,
    ("POST", "sessions", "peers"): _join,
    ("GET", "sessions", "peers", "config"): _membership,
    ("POST", "sessions", "messages"): _store,
    ("POST", "sessions", "messages", "list"): _listed,
    ("POST", "sessions", "messages", "upload"): _uploaded,
    ("GET", "sessions", "context"): _session_context,
    ("POST", "search"): _searched,
    ("POST", "conclusions"): _concluded,  # "list" and "query" stand where a name does
}
"""By method and the path's parts below a workspace, the names of peers and sessions left out."""


def honcho_server() -> AbstractContextManager[HonchoServer]:
    """Serve while the block runs."""
    return serving(HonchoServer())
