"""Shows what a provider keeps about a person: each memory, its event, and links to change it."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from memorybus.errors import ConfigError
from memorybus.ids import text_digest
from memorybus.jobs.inspect import InspectionFailed
from memorybus.text.display import iso
from starlette.responses import RedirectResponse, Response

from memorybus_console.operations.memories import amending, browsing
from memorybus_console.operations.memories.browsing import KeptMemory, Memories
from memorybus_console.web.links import (
    event_link,
    link,
    memory_from,
    number_of,
    owner_fields,
    place_of,
    want_of,
)
from memorybus_console.web.page import Page, PageRequest, Part


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of what one provider keeps about the person that the fields name."""
    owner, containing = owner_fields(request.query), request.query.get("q", "").strip()
    providers = browsing.list_providers(request.settings)
    name = request.query.get("provider") or browsing.choose_browsable(providers)
    page, problem = None, ""
    try:
        page = browsing.list_memories(
            *(request.settings, name, want_of(request.query)),
            skip=number_of(request.query, "skip"),
            containing=containing,
        )
    except (InspectionFailed, ConfigError) as error:
        problem = str(error)
    here = owner | {"provider": name, "q": containing}
    more = page is not None and page.more
    return {
        "owner": owner,
        "name": name,
        "q": containing,
        "iso": iso,
        "kept": page,
        "problem": problem,
        "rows": [
            (memory, event_link(memory), act_links(owner, name, memory))
            for memory in (page.memories if page else ())
        ],
        "tabs": [
            (provider.provider, link("/memories/kept", owner, {"provider": provider.provider}))
            for provider in providers
            if provider.exports
        ],
        "more": link("/memories/kept", here, {"skip": next_skip(page)}) if page and more else "",
    }


def next_skip(page: Memories) -> int:
    """Return how many memories the next page has to skip; pure."""
    return page.skipped + len(page.memories)


def act_links(owner: Mapping[str, str], provider: str, memory: KeptMemory) -> dict[str, str]:
    """Return the links to correct or delete a memory; none if no event can change it."""
    if not amending.is_amendable(memory):
        return {}
    which = {"provider": provider, "event": memory.event, "mark": text_digest(memory.text)}
    return {
        "Correct": link("/memories/change", owner, which, {"action": "correct"}),
        "Delete": link("/memories/change", owner, which, {"action": "delete"}),
    }


def redirect_to_event(request: PageRequest) -> Response:
    """Redirect to the event of a memory, or to a search if it is not found near its time."""
    memory = memory_from(request.query)
    event = amending.find_event_nearby(request.settings, memory)
    if event is None:
        return RedirectResponse(link("/events", {"q": memory.event}), 303)
    return RedirectResponse(f"/events/{quote(place_of(event), safe='')}", 303)


PAGE: Final = Page(
    path="/memories/kept",
    template="kept.html",
    show=show,
    parts=(Part("/memories/event", redirect_to_event),),
)
