"""Sessions as a tree: which came from which and why, as the newest events tell.

One view reads `MOST` events at most, and `SECONDS` long, however long the history is; older ones
are on the pages behind it. `memorybus sessions tree` reads all.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode

from memorybus.errors import ConfigError
from memorybus.lineage.graph import fold
from memorybus.operations import journal
from memorybus.operations.events.search import EventSearch, SearchRequest, format_mark, parse_mark
from memorybus.surfaces.views import tree
from memorybus.surfaces.web.page import Asked, Page
from memorybus.text.display import iso

SECONDS: Final = 0.1
"""Seconds that one view reads."""

MOST: Final = 2_000
"""Events that one view reads."""

SHOWN: Final = 200
"""Sessions that are shown."""

_DEEPEST: Final = 12
"""Levels that are drawn; deeper ones stand below the last of them."""


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the sessions of the newest events, each before those that came from it."""
    fields = {name: asked.query.get(name, "").strip() for name in ("session", "user")}
    search = _searched(asked, fields["user"])
    lineage = fold(event.envelope for event in search.found)
    found = tree.rows(lineage, fields["session"] or None)
    older = {**fields, "before": format_mark(search.mark) or ""}
    return {
        "fields": fields,
        "rows": [_row(depth, tree.as_json((depth, node))) for depth, node in found[:SHOWN]],
        "more": max(0, len(found) - SHOWN),
        "looked": search.looked,
        "unread": search.unread,
        "back_to": iso(search.reached) or "",
        "older": f"/sessions?{urlencode(older)}" if search.mark else "",
    }


def _searched(asked: Asked, user: str) -> EventSearch:
    try:
        before = parse_mark(asked.query.get("before"))
    except ConfigError:
        before = None
    ends = asked.site.clock.monotonic() + SECONDS
    with closing(journal.open_history(asked.settings)) as history:
        search = EventSearch(
            history,
            SearchRequest(user=user or None),
            before,
            lambda _: asked.site.clock.monotonic() >= ends,
        )
        search.run(MOST)
    return search


def _row(depth: int, said: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**said, "drawn": "   " * (min(depth, _DEEPEST) - 1) + "└─ " if depth else ""}


PAGE: Final = Page(path="/sessions", template="sessions.html", show=show, label="Sessions", key="s")
