"""Shows the newest events, updated every two seconds while the page is open."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from memorybus.errors import ConfigError

from memorybus_console.operations import journal
from memorybus_console.operations.events.search import EventSearch, SearchWords
from memorybus_console.web.links import event_row
from memorybus_console.web.page import Page, PageRequest
from memorybus_console.web.pages.events import TYPES, wanted_events

MAX_EVENTS: Final = 50  # the most events that are shown

SEARCH_SECONDS: Final = 0.1  # the most seconds that one update searches

FIELDS: Final = ("q", "session", "user", "type")


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the newest events that pass the filter, newest first."""
    fields = {name: request.query.get(name, "").strip() for name in FIELDS}
    data: dict[str, Any] = {"fields": fields, "types": TYPES, "problem": "", "events": []}
    try:
        search_request = wanted_events(
            {**fields, "since": "", "until": ""}, request.site.clock.now_ms()
        )
    except ConfigError as error:
        return data | {"problem": str(error)}
    ends = request.site.clock.monotonic() + SEARCH_SECONDS
    with closing(journal.open_history(request.settings)) as history:
        search = EventSearch(
            history, search_request, enough=lambda _: request.site.clock.monotonic() >= ends
        )
        search.run(MAX_EVENTS)
    words = SearchWords(search_request.words)
    return data | {"events": [event_row(event, words) for event in search.found]}


PAGE: Final = Page(path="/tail", template="tail.html", show=show, label="Tail", key="t")
