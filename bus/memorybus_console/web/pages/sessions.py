"""Shows sessions as a tree: which one each came from, and why, according to the newest events.

One view reads at most `MAX_EVENTS` events, for at most `READ_SECONDS`, however long the history is;
older sessions are on the next pages. `memorybus sessions tree` reads all events.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from memorybus.errors import ConfigError
from memorybus.lineage.graph import fold
from memorybus.text.display import iso

from memorybus_console.operations import journal
from memorybus_console.operations.events.search import (
    EventSearch,
    SearchRequest,
    format_mark,
    parse_mark,
)
from memorybus_console.views import tree
from memorybus_console.web.page import Page, PageRequest

READ_SECONDS: Final = 0.1  # the most seconds that one view reads

MAX_EVENTS: Final = 2_000  # the most events that one view reads

MAX_SESSIONS: Final = 200  # the most sessions that are shown

_MAX_INDENT: Final = 12  # the most levels of indentation; deeper sessions are drawn at the last one


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the sessions of the newest events, each before those that came from it."""
    fields = {name: request.query.get(name, "").strip() for name in ("session", "user")}
    search = _search(request, fields["user"])
    lineage = fold(event.envelope for event in search.found)
    rows = tree.rows(lineage, fields["session"] or None)
    older = {**fields, "before": format_mark(search.mark) or ""}
    return {
        "fields": fields,
        "rows": [
            _row(depth, tree.session_row((depth, node))) for depth, node in rows[:MAX_SESSIONS]
        ],
        "more": max(0, len(rows) - MAX_SESSIONS),
        "checked": search.checked,
        "unread": search.unread,
        "back_to": iso(search.reached) or "",
        "older": f"/sessions?{urlencode(older)}" if search.mark else "",
    }


def _search(request: PageRequest, user: str) -> EventSearch:
    try:
        before = parse_mark(request.query.get("before"))
    except ConfigError:
        before = None
    ends = request.site.clock.monotonic() + READ_SECONDS
    with closing(journal.open_history(request.settings)) as history:
        search = EventSearch(
            history,
            SearchRequest(user=user or None),
            before,
            lambda _: request.site.clock.monotonic() >= ends,
        )
        search.run(MAX_EVENTS)
    return search


def _row(depth: int, row: tree.SessionRow) -> Mapping[str, Any]:
    drawn = "   " * (min(depth, _MAX_INDENT) - 1) + "└─ " if depth else ""
    return {**msgspec.structs.asdict(row), "drawn": drawn}


PAGE: Final = Page(path="/sessions", template="sessions.html", show=show, label="Sessions", key="s")
