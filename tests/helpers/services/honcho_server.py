"""A fake Honcho server on loopback: the routes of API v3 that honcho-ai calls, by its public docs.

It derives nothing: a peer's representation is what that peer has said in the workspace, a session's
summary is what was said in it. So whatever falls together in Honcho is seen to fall together here.
It refuses what the server refuses: names and texts that are too long or of other characters, a
workspace that is deleted while it has sessions.
"""

import itertools
import re
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from helpers.services.fake_http import serving
from helpers.services.faulty_http import FaultyHandler, FaultyServer, Lost, Refused

_BORN = "2026-01-01T00:00:00Z"


class Said(NamedTuple):
    """One stored message.

    Attributes:
        workspace: where it lies.
        session: in which of the workspace's sessions.
        peer: who said it.
        content: the text.
        metadata: what came with it.
        at: when it was said, as the client put it.
        reasoned: whether anything may be derived of it.
        id: the server's.
    """

    workspace: str
    session: str
    peer: str
    content: str
    metadata: Mapping[str, Any]
    at: str = _BORN
    reasoned: bool = True
    id: str = ""


class Conclusion(NamedTuple):
    """One stored conclusion: what `observer` holds of `observed`."""

    workspace: str
    session: str
    observer: str
    observed: str
    content: str
    id: str = ""


class HonchoServer(FaultyServer):
    """What it holds; of messages it may refuse writes, and lose answers.

    Attributes:
        messages: the stored messages, in order.
        conclusions: the stored conclusions, in order.
        uploads: the paths of file uploads; the files themselves are not kept.
        members: the peers of each (workspace, session).
        metadata: of each workspace, (workspace,), and session, (workspace, session).
        answers: what its model says next; without one, a representation.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.messages: list[Said] = []
        self.conclusions: list[Conclusion] = []
        self.uploads: list[str] = []
        self.members: dict[tuple[str, str], dict[str, Any]] = {}
        self.cards: dict[tuple[str, str, str], list[str]] = {}
        self.metadata: dict[tuple[str, ...], dict[str, Any]] = {}
        self.answers: deque[str] = deque()
        self.numbers = itertools.count()

    def workspaces(self) -> list[str]:
        """Return the names of the workspaces that are there, sorted."""
        return sorted(key[0] for key in self.metadata if len(key) == 1)

    def texts(self) -> list[str]:
        """Return all texts that it holds."""
        return [one.content for one in (*self.messages, *self.conclusions)]

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


class _Handler(FaultyHandler):
    server: HonchoServer

    def answer(self, method: str, body: Any) -> Any:
        _check(body)
        address = urlsplit(self.path)
        parts = tuple(unquote(one) for one in address.path.strip("/").split("/"))
        return _answer(self.server, _Request(method, parts, dict(parse_qsl(address.query)), body))


def _check(value: Any) -> None:
    """Refuse NUL wherever it stands: the server's database keeps none."""
    if isinstance(value, str) and "\0" in value:
        raise Refused(500, {"detail": "NUL in a text"})
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _check(one)


def _answer(server: HonchoServer, request: _Request) -> Any:
    """Return the answer to a request.

    Raises:
        Lost: it is done, and the answer is lost.
        Refused: nothing is done.
    """
    version, kind, *rest = request.parts
    if (version, kind) != ("v3", "workspaces"):
        raise _unknown(request)
    if not rest:
        return _thing(server, (_named(request),), request.body)
    workspace, things, name, *below = (*rest, "", "")[: max(3, len(rest))]
    last = below[1:][-1:]
    if request.method == "PUT" and below[:1] == ["messages"]:
        last = ["m"]  # a message's id
    route = (request.method, things, *below[:1], *last)
    if rest == ["list"]:
        return _workspaces(server, request)
    if route not in _ROUTES:
        raise _unknown(request)
    if (workspace,) not in server.metadata:
        raise Refused(404, {"detail": "no such workspace"})
    return _ROUTES[route](server, request, workspace, name)


def _unknown(request: _Request) -> Refused:
    path = "/".join(request.parts)
    return Refused(404, {"detail": f"the fake knows no {request.method} {path}"})


def _named(request: _Request) -> str:
    """Return the name that a body gives a thing."""
    name = str(request.body["id"])
    if not re.fullmatch("[a-zA-Z0-9_-]{1,100}", name):
        raise _invalid("a name is 1 to 100 letters, digits, _ and -", name)
    return name


def _invalid(why: str, given: str) -> Refused:
    return Refused(422, {"detail": [{"loc": ["body"], "msg": why, "input": given}]})


def _thing(server: HonchoServer, key: tuple[str, ...], body: Any = None) -> dict[str, Any]:
    """Return a workspace or session as the API shows it; it is made if it is not there."""
    known = server.metadata.setdefault(key, {})
    if body and body.get("metadata") is not None:
        server.metadata[key] = known = dict(body["metadata"])
    return _shown(key[-1], key[0] if len(key) > 1 else "", known)


def _shown(name: str, workspace: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "workspace_id": workspace,
        "created_at": _BORN,
        "is_active": True,
        "metadata": dict(metadata),
        "configuration": {},
    }


def _workspaces(server: HonchoServer, request: _Request) -> Any:
    wanted = _wanted(request.body)
    found = [(key, known) for key, known in server.metadata.items() if len(key) == 1]
    items = [_shown(key[0], "", known) for key, known in found if wanted.items() <= known.items()]
    return _page(items[::-1] if request.query.get("reverse") == "true" else items, request)


def _wanted(body: Any) -> dict[str, Any]:
    """Return the metadata that is asked for."""
    return dict(((body or {}).get("filters") or {}).get("metadata") or {})


def _update(server: HonchoServer, request: _Request, workspace: str, name: str) -> Any:
    return _thing(server, (workspace, name) if name else (workspace,), request.body)


def _sessions(server: HonchoServer, request: _Request, workspace: str, name: str) -> Any:
    if name == "list":
        found = [key for key in server.metadata if key[0] == workspace and len(key) == 2]
        return _page([_thing(server, key) for key in found], request)
    session = _named(request)
    _join(server, request._replace(body=request.body.get("peers") or {}), workspace, session)
    return _thing(server, (workspace, session), request.body)


def _peer(server: HonchoServer, request: _Request, workspace: str, _: str) -> Any:
    return _shown(_named(request), workspace, {})


def _drop_workspace(server: HonchoServer, request: _Request, workspace: str, _: str) -> Any:
    if any(key[0] == workspace and len(key) == 2 for key in server.metadata):
        raise Refused(409, {"detail": "active session(s) remain. Delete all sessions first."})
    del server.metadata[workspace,]
    server.conclusions = [one for one in server.conclusions if one.workspace != workspace]
    server.cards = {key: card for key, card in server.cards.items() if key[0] != workspace}


def _drop_session(server: HonchoServer, request: _Request, workspace: str, name: str) -> Any:
    del server.metadata[workspace, name]
    place = (workspace, name)
    server.messages = [one for one in server.messages if one[:2] != place]
    server.conclusions = [one for one in server.conclusions if one[:2] != place]


def _join(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    server.members.setdefault((workspace, session), {}).update(request.body)
    return _thing(server, (workspace, session))


def _membership(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    members = server.members.get((workspace, session), {})
    return members.get(request.parts[6], {})


def _store(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    if server.refuse:
        server.refuse -= 1
        raise Refused(503, {"detail": "the fake is told to refuse"})
    stored = [_stored(server, one, workspace, session) for one in request.body["messages"]]
    if not 1 <= len(stored) <= 100:
        raise _invalid("1 to 100 messages", "")
    server.messages.extend(stored)
    for one in stored:  # who says something takes part
        server.members.setdefault((workspace, session), {}).setdefault(one.peer, {})
    server.metadata.setdefault((workspace, session), {})
    if server.lose:
        server.lose -= 1
        raise Lost
    return [_message(one) for one in stored]


def _stored(server: HonchoServer, one: Any, workspace: str, session: str) -> Said:
    content = one["content"]
    if len(content) > 25_000:
        raise _invalid("content has 25,000 characters at most", content)
    reasoning = (one.get("configuration") or {}).get("reasoning") or {}
    return Said(
        workspace,
        session,
        one["peer_id"],
        content,
        one.get("metadata") or {},
        one.get("created_at") or _BORN,
        reasoning.get("enabled") is not False,
        f"m{next(server.numbers)}",
    )


def _message(one: Said) -> dict[str, Any]:
    return {
        "id": one.id,
        "content": one.content,
        "peer_id": one.peer,
        "session_id": one.session,
        "workspace_id": one.workspace,
        "metadata": dict(one.metadata),
        "created_at": one.at,
        "token_count": len(one.content.split()),
    }


def _mark(server: HonchoServer, request: _Request, workspace: str, session: str) -> Any:
    (number,) = [n for n, one in enumerate(server.messages) if one.id == request.parts[6]]
    server.messages[number] = server.messages[number]._replace(metadata=request.body["metadata"])
    return _message(server.messages[number])


def _found(server: HonchoServer, wanted: Callable[[Said], bool]) -> list[dict[str, Any]]:
    return [_message(one) for one in server.messages if wanted(one)]


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
    said = server.answers.popleft() if server.answers else text
    return {"content": said, "representation": text}


def _card(server: HonchoServer, request: _Request, workspace: str, peer: str) -> Any:
    place = (workspace, peer, request.query.get("target", peer))
    if request.method == "PUT":
        server.cards[place] = request.body["peer_card"]
    return {"peer_card": server.cards.get(place)}


def _searched(server: HonchoServer, request: _Request, workspace: str, peer: str) -> Any:
    """Answer the messages of a peer's sessions, or of all, that share most words with a query."""
    words = set(re.findall(r"\w+", request.body["query"].lower()))
    viewer = peer or (request.body.get("filters") or {}).get("peer_perspective")

    def shared(one: dict[str, Any]) -> int:
        return len(words.intersection(re.findall(r"\w+", one["content"].lower())))

    def wanted(one: Said) -> bool:
        seen = viewer is None or viewer in server.members.get((one.workspace, one.session), {})
        return one.workspace == workspace and seen

    found = [one for one in _found(server, wanted) if shared(one)]
    return sorted(found, key=shared, reverse=True)[: request.body.get("limit", 10)]


def _concluded(server: HonchoServer, request: _Request, workspace: str, _: str) -> Any:
    """Store conclusions, or answer those that are asked for."""
    if "conclusions" in (request.body or {}):
        stored = [
            Conclusion(
                workspace,
                one.get("session_id", ""),
                one["observer_id"],
                one["observed_id"],
                one["content"],
                f"c{next(server.numbers)}",
            )
            for one in request.body["conclusions"]
        ]
        server.conclusions.extend(stored)
        return [_conclusion(one) for one in stored]
    asked = (request.body or {}).get("filters") or {}
    shown = [_conclusion(one) for one in server.conclusions if one.workspace == workspace]
    found = [one for one in shown if asked.items() <= one.items()]
    if "query" not in (request.body or {}):
        return _page(found, request)
    words = re.findall(r"\w+", request.body["query"].lower())
    near = [one for one in found if any(word in one["content"].lower() for word in words)]
    return near[: request.body["top_k"]]


def _conclusion(one: Conclusion) -> dict[str, Any]:
    return {
        "id": one.id,
        "content": one.content,
        "observer_id": one.observer,
        "observed_id": one.observed,
        "session_id": one.session,
        "created_at": _BORN,
    }


def _drop_conclusion(server: HonchoServer, request: _Request, workspace: str, name: str) -> Any:
    server.conclusions = [one for one in server.conclusions if one.id != name]


_ROUTES: Mapping[tuple[str, ...], Callable[[HonchoServer, _Request, str, str], Any]] = {
    ("PUT", ""): _update,
    ("DELETE", ""): _drop_workspace,
    ("POST", "peers"): _peer,
    ("POST", "peers", "chat"): _peer_text,
    ("POST", "peers", "representation"): _peer_text,
    ("POST", "peers", "search"): _searched,
    ("GET", "peers", "card"): _card,
    ("PUT", "peers", "card"): _card,
    ("GET", "peers", "context"): _peer_context,
    ("POST", "sessions"): _sessions,  # "list" stands where a name does
    ("PUT", "sessions"): _update,
    ("DELETE", "sessions"): _drop_session,
    ("POST", "sessions", "peers"): _join,
    ("GET", "sessions", "peers", "config"): _membership,
    ("POST", "sessions", "messages"): _store,
    ("POST", "sessions", "messages", "list"): _listed,
    ("PUT", "sessions", "messages", "m"): _mark,
    ("POST", "sessions", "messages", "upload"): _uploaded,
    ("GET", "sessions", "context"): _session_context,
    ("POST", "search"): _searched,
    ("POST", "conclusions"): _concluded,  # "list" and "query" stand where a name does
    ("DELETE", "conclusions"): _drop_conclusion,
}
"""By method and the path's parts below a workspace, the names of peers and sessions left out."""


def honcho_server() -> AbstractContextManager[HonchoServer]:
    """Serve while the block runs."""
    return serving(HonchoServer())
