"""What a provider keeps of somebody: each memory, where it came from, and what may be done."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from memorybus.errors import ConfigError
from memorybus.ids import text_digest
from memorybus.jobs.inspect import InspectionFailed
from memorybus.operations.memories import amending, browsing
from memorybus.operations.memories.browsing import KeptMemory, Memories
from memorybus.surfaces.web.kept_links import event_link, link, memory_of, owner_of, whose_of
from memorybus.surfaces.web.page import Asked, Page, Part
from memorybus.surfaces.web.shown_events import place_of
from memorybus.text.display import iso

LONGEST: Final = 9
"""Digits of a number of memories that are passed over."""


def show(asked: Asked) -> Mapping[str, Any]:
    """Return a page of what one provider keeps of whom the fields mean."""
    owner, holding = owner_of(asked.query), asked.query.get("q", "").strip()
    known = browsing.list_providers(asked.settings)
    name = asked.query.get("provider") or browsing.choose_browsable(known)
    found, problem = None, ""
    try:
        found = browsing.list_memories(
            *(asked.settings, name, whose_of(asked.query)),
            skip=skipped(asked.query),
            holding=holding,
        )
    except (InspectionFailed, ConfigError) as error:
        problem = str(error)
    here = owner | {"provider": name, "q": holding}
    more = found is not None and found.more
    return {
        "owner": owner,
        "name": name,
        "q": holding,
        "iso": iso,
        "found": found,
        "problem": problem,
        "rows": [
            (one, event_link(one), acts(owner, name, one))
            for one in (found.memories if found else ())
        ],
        "tabs": [
            (one.provider, link("/memories/kept", owner, {"provider": one.provider}))
            for one in known
            if one.exports
        ],
        "more": link("/memories/kept", here, {"skip": seen(found)}) if found and more else "",
    }


def skipped(fields: Mapping[str, str]) -> int:
    """Return how many memories are passed over; pure."""
    text = fields.get("skip", "")
    return int(text) if text.isdecimal() and len(text) <= LONGEST else 0


def seen(found: Memories) -> int:
    """Return how many memories stand before the next page; pure."""
    return found.skipped + len(found.memories)


def acts(owner: Mapping[str, str], provider: str, one: KeptMemory) -> dict[str, str]:
    """Return where a memory may be put right or taken back; nothing if no event can do that."""
    if not amending.is_amendable(one):
        return {}
    which = {"provider": provider, "event": one.event, "mark": text_digest(one.text)}
    return {
        "Correct": link("/memories/change", owner, which, {"action": "correct"}),
        "Delete": link("/memories/change", owner, which, {"action": "delete"}),
    }


def event(asked: Asked) -> Response:
    """Lead to the event of a memory, or to a search for it where it is not near its time."""
    memory = memory_of(asked.query)
    found = amending.find_event_nearby(asked.settings, memory)
    if found is None:
        return RedirectResponse(link("/events", {"q": memory.event}), 303)
    return RedirectResponse(f"/events/{quote(place_of(found), safe='')}", 303)


PAGE: Final = Page(
    path="/memories/kept",
    template="kept.html",
    show=show,
    parts=(Part("/memories/event", event),),
)
