"""Events searched: a form, what was found, and a search that goes on until it is stopped.

One request looks for `SECONDS` at most, so that it is answered soon however long the history is.
What was found until then is shown, and the page asks for more from where it stopped.
"""

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response

from memorybus.errors import ConfigError
from memorybus.events import EVENT_TYPES, UnknownEvent
from memorybus.operations import journal
from memorybus.operations.events.search import EventSearch, SearchRequest, format_mark, parse_mark
from memorybus.operations.events.words import SearchWords
from memorybus.surfaces.web import answers
from memorybus.surfaces.web.page import Asked, Page, Part
from memorybus.surfaces.web.shown_events import row
from memorybus.text.display import iso
from memorybus.text.times import parse_ago, parse_timestamp

SECONDS: Final = 0.15
"""Seconds that one request looks."""

FOUND: Final = 25
"""Events on a page."""

FIELDS: Final = ("q", "session", "user", "type", "since", "until")
"""The fields of the form; what is in them stands in the path of every link."""

TYPES: Final = (*(kind.__name__ for kind in EVENT_TYPES), UnknownEvent.__name__)

_WORD = re.compile(r'"([^"]*)"|(\S+)')
_ID = re.compile(r"[0-9a-fA-F]{32}")


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the form as it was filled in, and the first of what is found."""
    fields = {name: asked.query.get(name, "").strip() for name in FIELDS}
    data = {"fields": fields, "types": TYPES, "problem": ""}
    try:
        return data | _found(asked, fields)
    except ConfigError as error:
        nothing = {"found": [], "unread": [], "looked": 0, "back_to": "", "going": "", "older": ""}
        return data | nothing | {"problem": str(error)}


def found(asked: Asked) -> Response:
    """Return the rows of a search that goes on, and what goes on after them."""
    fields = {name: asked.query.get(name, "").strip() for name in FIELDS}
    data = answers.base(asked.site, asked.request, asked.who, ()) | _found(asked, fields)
    return HTMLResponse(asked.site.templates.get_template("events_found.html").render(data))


def _found(asked: Asked, fields: Mapping[str, str]) -> dict[str, Any]:
    """Search until the page is full or it took long enough."""
    before, left = parse_mark(asked.query.get("before")), _number(asked, "left", FOUND)
    wanted = wanted_events(fields, asked.site.clock.now_ms())
    held = "held" in asked.query
    ends = asked.site.clock.monotonic() + SECONDS
    with closing(journal.open_history(asked.settings)) as history:
        search = EventSearch(
            history, wanted, before, lambda _: asked.site.clock.monotonic() >= ends
        )
        if not held:
            search.run(min(FOUND, max(1, left)))
    words = SearchWords(wanted.words)
    left -= len(search.found)
    more = {**fields, "before": format_mark(search.mark) or ""}
    looked = _number(asked, "looked", 0) + search.looked
    on = {**more, "left": left, "looked": looked}
    return {
        "found": [row(one, words) for one in search.found],
        "unread": search.unread,
        "looked": looked,
        "back_to": iso(search.reached) or asked.query.get("back_to", ""),
        "going": _link("/events/found", on) if search.mark and left > 0 and not held else "",
        "older": _link("/events", more) if search.mark else "",
    }


def wanted_events(fields: Mapping[str, str], now_ms: int) -> SearchRequest:
    """Return what a form asks for; pure.

    Raises:
        ConfigError: a time, or a type, that nobody can read.
    """
    words = tuple(phrase or word for phrase, word in _WORD.findall(fields["q"]))
    named = words[0].lower() if len(words) == 1 and _ID.fullmatch(words[0]) else None
    if fields["type"] and fields["type"] not in TYPES:
        raise ConfigError(f"there is no type {fields['type']!r} of events")
    return SearchRequest(
        id=named,
        words=() if named else words,
        session=fields["session"] or None,
        user=fields["user"] or None,
        type=fields["type"] or None,
        since=_time(fields["since"], now_ms),
        until=_time(fields["until"], now_ms),
    )


def _time(text: str, now_ms: int) -> int | None:
    if not text:
        return None
    try:
        return parse_ago(text, now_ms) or parse_timestamp(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} is no time: 2026-05-31T18:00, or how long ago: 2h") from error


def _number(asked: Asked, name: str, default: int) -> int:
    text = asked.query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else default


def _link(path: str, fields: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode({name: value for name, value in fields.items() if value})}"


PAGE: Final = Page(
    path="/events",
    template="events.html",
    show=show,
    label="Events",
    key="e",
    parts=(Part("/events/found", found),),
)
