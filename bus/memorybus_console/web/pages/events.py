"""The search for events: a form, the events found, and a search that can be stopped.

One request searches for `SEARCH_SECONDS` at most, so that it is answered soon however long the
history is. The page shows what was found, and requests more from where the search stopped.
"""

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode

from memorybus.errors import ConfigError
from memorybus.events import EVENT_TYPES, UnknownEvent
from memorybus.text.display import iso
from memorybus.text.times import parse_ago, parse_timestamp
from starlette.responses import HTMLResponse, Response

from memorybus_console.operations import journal
from memorybus_console.operations.events.search import (
    EventSearch,
    SearchRequest,
    SearchWords,
    format_mark,
    parse_mark,
)
from memorybus_console.web import answers
from memorybus_console.web.links import event_row, number_of
from memorybus_console.web.page import Page, PageRequest, Part

SEARCH_SECONDS: Final = 0.15  # seconds that one request searches

PAGE_SIZE: Final = 25  # how many events a page has

FIELDS: Final = ("q", "session", "user", "type", "since", "until")
"""The fields of the form; every link repeats their values."""

TYPES: Final = (*(kind.__name__ for kind in EVENT_TYPES), UnknownEvent.__name__)

_WORD = re.compile(r'"([^"]*)"|(\S+)')
_ID = re.compile(r"[0-9a-fA-F]{32}")


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the form as it was filled in, and the first events found."""
    fields = {name: request.query.get(name, "").strip() for name in FIELDS}
    data = {"fields": fields, "types": TYPES, "problem": ""}
    try:
        return data | _search(request, fields)
    except ConfigError as error:
        nothing = {
            "events": [],
            "unread": [],
            "checked": 0,
            "back_to": "",
            "going": "",
            "older": "",
        }
        return data | nothing | {"problem": str(error)}


def answer_found(request: PageRequest) -> Response:
    """Return the next rows of a running search, and the link that continues it."""
    fields = {name: request.query.get(name, "").strip() for name in FIELDS}
    data = answers.base_context(request.site, request.http, request.who, ()) | _search(
        request, fields
    )
    return HTMLResponse(request.site.templates.get_template("events_found.html").render(data))


def _search(request: PageRequest, fields: Mapping[str, str]) -> dict[str, Any]:
    """Search until the page is full or the time is over."""
    before = parse_mark(request.query.get("before"))
    remaining = number_of(request.query, "remaining", PAGE_SIZE)
    search_request = wanted_events(fields, request.site.clock.now_ms())
    held = "held" in request.query
    ends = request.site.clock.monotonic() + SEARCH_SECONDS
    with closing(journal.open_history(request.settings)) as history:
        search = EventSearch(
            history, search_request, before, lambda _: request.site.clock.monotonic() >= ends
        )
        if not held:
            search.run(min(PAGE_SIZE, max(1, remaining)))
    words = SearchWords(search_request.words)
    remaining -= len(search.found)
    more = {**fields, "before": format_mark(search.mark) or ""}
    checked = number_of(request.query, "checked") + search.checked
    on = {**more, "remaining": remaining, "checked": checked}
    return {
        "events": [event_row(event, words) for event in search.found],
        "unread": search.unread,
        "checked": checked,
        "back_to": iso(search.reached) or request.query.get("back_to", ""),
        "going": _link("/events/found", on) if search.mark and remaining > 0 and not held else "",
        "older": _link("/events", more) if search.mark else "",
    }


def wanted_events(fields: Mapping[str, str], now_ms: int) -> SearchRequest:
    """Return which events a form asks for; pure."""
    words = tuple(phrase or word for phrase, word in _WORD.findall(fields["q"]))
    named = words[0].lower() if len(words) == 1 and _ID.fullmatch(words[0]) else None
    if fields["type"] and fields["type"] not in TYPES:
        raise ConfigError(f"there is no event type {fields['type']!r}")
    return SearchRequest(
        id=named,
        words=() if named else words,
        session=fields["session"] or None,
        user=fields["user"] or None,
        type=fields["type"] or None,
        since=_parse_time(fields["since"], now_ms),
        until=_parse_time(fields["until"], now_ms),
    )


def _parse_time(text: str, now_ms: int) -> int | None:
    if not text:
        return None
    try:
        return parse_ago(text, now_ms) or parse_timestamp(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not a time: give 2026-05-31T18:00, or how long ago: 2h"
        ) from error


def _link(path: str, fields: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode({name: value for name, value in fields.items() if value})}"


PAGE: Final = Page(
    path="/events",
    template="events.html",
    show=show,
    label="Events",
    key="e",
    parts=(Part("/events/found", answer_found),),
)
