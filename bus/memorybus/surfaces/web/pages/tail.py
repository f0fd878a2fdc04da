"""The live tail: the newest events, again every two seconds while somebody looks."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from memorybus.errors import ConfigError
from memorybus.operations import journal
from memorybus.operations.events.search import EventSearch
from memorybus.operations.events.words import SearchWords
from memorybus.surfaces.web.page import Asked, Page
from memorybus.surfaces.web.pages.events import TYPES, wanted_events
from memorybus.surfaces.web.shown_events import row

NEWEST: Final = 50
"""Events that are shown."""

SECONDS: Final = 0.1
"""Seconds that one look back takes at most."""

FIELDS: Final = ("q", "session", "user", "type")


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the newest events that pass, newest first."""
    fields = {name: asked.query.get(name, "").strip() for name in FIELDS}
    data: dict[str, Any] = {"fields": fields, "types": TYPES, "problem": "", "found": []}
    try:
        wanted = wanted_events({**fields, "since": "", "until": ""}, asked.site.clock.now_ms())
    except ConfigError as error:
        return data | {"problem": str(error)}
    ends = asked.site.clock.monotonic() + SECONDS
    with closing(journal.open_history(asked.settings)) as history:
        search = EventSearch(history, wanted, enough=lambda _: asked.site.clock.monotonic() >= ends)
        search.run(NEWEST)
    words = SearchWords(wanted.words)
    return data | {"found": [row(one, words) for one in search.found]}


PAGE: Final = Page(path="/tail", template="tail.html", show=show, label="Tail", key="t")
