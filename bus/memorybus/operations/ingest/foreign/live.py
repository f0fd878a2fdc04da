"""Sources that can be read where they run: which pages there are, in the shape of an export.

Hindsight: ``GET {bank}/memories/list?limit&offset`` (client 1.1.0, ``memory_api.py``), the address
being ``http://…/v1/default/banks/BANK``. Honcho: ``POST {workspace}/sessions/list``,
``…/sessions/ID/messages/list`` and ``…/conclusions/list``, each ``?page&size`` (SDK 2.7.0,
``honcho/http/routes.py``), the address being ``http://…/v3/workspaces/WORKSPACE``.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec

from memorybus.operations.ingest.foreign.model import ForeignError
from memorybus.operations.ingest.foreign.service import Fetch

SIZE = 100
"""Records of a page."""

Page: TypeAlias = dict[str, Any]


class LiveSource(msgspec.Struct, frozen=True):
    """A source that can be read where it runs.

    Attributes:
        pages: yields what it holds, page by page; raises `ForeignError`.
        key: the environment variable that holds its key, as its own client calls it.
    """

    pages: Callable[[Fetch], Iterator[Page]]
    key: str


def _of_hindsight(fetch: Fetch) -> Iterator[Page]:
    offset = 0
    while True:
        page = fetch(f"/memories/list?limit={SIZE}&offset={offset}")
        yield page
        offset += len(_items(page))
        if not _items(page) or offset >= page.get("total", 0):
            return


def _of_honcho(fetch: Fetch) -> Iterator[Page]:
    for sessions in _listed(fetch, "/sessions/list"):
        for session in _items(sessions):
            yield from _listed(fetch, f"/sessions/{_name(session)}/messages/list")
    yield from _listed(fetch, "/conclusions/list")


def _listed(fetch: Fetch, path: str) -> Iterator[Page]:
    """Yield the pages of one of Honcho's lists, in the order in which its items were made."""
    number, more = 0, True
    while more:
        number += 1
        page = fetch(f"{path}?page={number}&size={SIZE}&reverse=true", {})
        yield page
        more = bool(_items(page)) and number < page.get("pages", 0)


def _items(page: Page) -> list[Any]:
    items = page.get("items")
    if not isinstance(items, list):
        raise ForeignError("a page without 'items'")
    return items


def _name(session: object) -> str:
    known = session.get("id") if isinstance(session, dict) else None
    if not isinstance(known, str):
        raise ForeignError("a session without an 'id'")
    return quote(known, safe="")


SOURCES: Mapping[str, LiveSource] = MappingProxyType({
    "hindsight": LiveSource(_of_hindsight, "HINDSIGHT_API_KEY"),
    "honcho": LiveSource(_of_honcho, "HONCHO_API_KEY"),
})  # fmt: skip
"""By name; of the others a file is read."""
