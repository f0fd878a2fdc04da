"""Reads sources from their running service, as pages in the shape of an export.

It writes nothing and asks no other server.

Hindsight: ``GET {bank}/memories/list?limit&offset`` (client 1.1.0, ``memory_api.py``), the address
being ``http://…/v1/default/banks/BANK``. Honcho: ``POST {workspace}/sessions/list``,
``…/sessions/ID/messages/list`` and ``…/conclusions/list``, each ``?page&size`` (SDK 2.7.0,
``honcho/http/routes.py``), the address being ``http://…/v3/workspaces/WORKSPACE``.
Mem0: ``GET /memories?user_id&top_k`` of its own server (2.2.1, ``server/main.py``), the address
being ``http://…?user_id=ANN`` (or ``agent_id``, ``run_id``). MentisDB: ``POST
/v1/thoughts/traverse`` (0.9.7), the address being ``http://…:9472?chain_key=CHAIN``; no keys.
"""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import IO, Any, NoReturn, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from memorybus_console.operations.ingest.foreign.records import ForeignError

TIMEOUT = 60.0  # seconds that a service may take before it sends anything

LARGEST_ANSWER = 64 << 20  # the most bytes of an answer (G10)

_CONNECTION_ERRORS = (OSError, http.client.HTTPException, ValueError, RecursionError)


def is_address(text: str) -> bool:
    """Return whether an argument of a command is the address of a service, and not a file."""
    return text.lower().startswith(("http://", "https://"))


class ForeignService:
    """One service. Use from one thread.

    Args:
        address: the address of its API, to which the paths of requests are appended.
        headers: sent with each request; the key is among them.

    Raises:
        ForeignError: it is no address, or contains a user or a password, which would be shown.
    """

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        try:
            parts = urlsplit(address)
        except ValueError as error:
            raise ForeignError(f"not an address: {error}") from error
        if parts.username or parts.password:
            raise ForeignError(
                "the address must not contain a user or password; put the key into the variable "
                "of the source (docs/agents.md)"
            )
        self.address_query: Mapping[str, str] = dict(parse_qsl(parts.query))
        self._address = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
        json_only = {"Accept": "application/json", "Content-Type": "application/json"}
        self._headers = {**json_only, **headers}
        self._opener = urllib.request.build_opener(_NoRedirects())

    def __call__(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object at a path below the address; a request with a body is a POST."""
        where = f"{self._address}{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(where, data, self._headers)  # noqa: S310  http or https
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                value = json.loads(_read_bounded(answer))
        except urllib.error.HTTPError as error:
            with error:
                raise ForeignError(f"it answered {error.code} {error.reason}", where) from error
        except _CONNECTION_ERRORS as error:
            raise ForeignError(f"it cannot be read: {error}", where) from error
        if not isinstance(value, dict):
            raise ForeignError("its reply is not a JSON object", where)
        return value


def _read_bounded(answer: IO[bytes]) -> bytes:
    data = answer.read(LARGEST_ANSWER + 1)
    if len(data) > LARGEST_ANSWER:
        raise ValueError(f"more than {LARGEST_ANSWER} bytes")
    return data


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Lets every redirect fail, so that no other server gets the key."""

    def http_error_302(
        self, req: object, fp: object, code: int, msg: str, headers: object
    ) -> NoReturn:
        raise ForeignError(f"it redirects ({code}); name the address it redirects to")

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


PAGE_SIZE = 100  # how many records a page has

MEM0_LIMIT = 1_000_000  # how many memories are requested from Mem0, which has no pages

_MEM0_IDS = ("user_id", "agent_id", "run_id")
_MEM0_DEFAULT_LIMIT = 20  # how many memories a Mem0 server that does not know ``top_k`` returns

SourcePage: TypeAlias = dict[str, Any]


class LiveSource(msgspec.Struct, frozen=True):
    """A source that can be read from its running service.

    Attributes:
        pages: yields its content page by page; raises `ForeignError`.
    """

    pages: Callable[[ForeignService], Iterator[SourcePage]]
    key: str = ""  # the environment variable with its key, named as by its own client; "" for none
    header: str = "Authorization"
    prefix: str = "Bearer "  # the text before the key in that header

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the header with a key; no header if there is no key."""
        return {self.header: f"{self.prefix}{key}"} if key else {}


def _hindsight_pages(fetch: ForeignService) -> Iterator[SourcePage]:
    offset = 0
    while True:
        page = fetch(f"/memories/list?limit={PAGE_SIZE}&offset={offset}")
        yield page
        offset += len(_items_of(page))
        if not _items_of(page) or offset >= _count_of(page, "total"):
            return


def _honcho_pages(fetch: ForeignService) -> Iterator[SourcePage]:
    for sessions in _honcho_list(fetch, "/sessions/list"):
        for session in _items_of(sessions):
            yield from _honcho_list(fetch, f"/sessions/{_session_path(session)}/messages/list")
    yield from _honcho_list(fetch, "/conclusions/list")


def _mem0_pages(fetch: ForeignService) -> Iterator[SourcePage]:
    ids = {name: fetch.address_query[name] for name in _MEM0_IDS if name in fetch.address_query}
    if not ids:
        raise ForeignError(f"say whose memories: …?user_id=ID (one of {', '.join(_MEM0_IDS)})")
    page = fetch(f"/memories?{urlencode({**ids, 'top_k': MEM0_LIMIT})}")
    shown = page.get("results")
    if isinstance(shown, list) and len(shown) == _MEM0_DEFAULT_LIMIT:
        raise ForeignError(
            f"exactly {_MEM0_DEFAULT_LIMIT} memories came: this server shows no more at once; "
            f"export them with its library, get_all(filters=…, top_k=…)"
        )
    yield page


def _mentisdb_pages(fetch: ForeignService) -> Iterator[SourcePage]:
    chain = fetch.address_query.get("chain_key")
    if not chain:
        raise ForeignError("say which chain: …?chain_key=NAME")
    begin = {"chain_key": chain, "direction": "forward", "chunk_size": PAGE_SIZE}
    at, more = 0, True
    while more:
        body = {**begin, "include_anchor": not at, "anchor_index": at and at - 1}
        page = fetch("/v1/thoughts/traverse", body)
        yield page
        thoughts = page.get("thoughts")
        if not isinstance(thoughts, list):
            raise ForeignError("a page without 'thoughts'")
        at += len(thoughts)
        more = bool(thoughts) and page.get("has_more") is True


def _honcho_list(fetch: ForeignService, path: str) -> Iterator[SourcePage]:
    """Yield the pages of one of Honcho's lists, in the order in which its items were made."""
    number, more = 0, True
    while more:
        number += 1
        page = fetch(f"{path}?page={number}&size={PAGE_SIZE}&reverse=true", {})
        yield page
        more = bool(_items_of(page)) and number < _count_of(page, "pages")


def _count_of(page: SourcePage, name: str) -> int:
    count = page.get(name, 0)
    if not isinstance(count, int):
        raise ForeignError(f"a page whose {name!r} is no number")
    return count


def _items_of(page: SourcePage) -> list[Any]:
    items = page.get("items")
    if not isinstance(items, list):
        raise ForeignError("a page without 'items'")
    return items


def _session_path(session: object) -> str:
    session_id = session.get("id") if isinstance(session, dict) else None
    if not isinstance(session_id, str):
        raise ForeignError("a session without an 'id'")
    return quote(session_id, safe="")


SOURCES: Mapping[str, LiveSource] = MappingProxyType({
    "hindsight": LiveSource(_hindsight_pages, "HINDSIGHT_API_KEY"),
    "honcho": LiveSource(_honcho_pages, "HONCHO_API_KEY"),
    "mem0": LiveSource(_mem0_pages, "MEM0_API_KEY", "X-API-Key", ""),
    "mentisdb": LiveSource(_mentisdb_pages),
})  # fmt: skip
"""The sources by name; the other sources are read from files only."""
