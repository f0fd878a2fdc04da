"""One event: what it says, where it lies, and what became of it at each provider."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import ConfigError, MissingEvent
from memorybus.history.backward import BackwardMark
from memorybus.operations.events.search import parse_mark
from memorybus.operations.events.story import event_at, story_of
from memorybus.operations.stores import Stores
from memorybus.surfaces.views.events import said_json
from memorybus.surfaces.views.found import lies_at, told
from memorybus.surfaces.views.safe import json_text
from memorybus.surfaces.web.page import Asked, Page
from memorybus.text.display import event_name, iso


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the event of a place, and its story."""
    mark = place_in(asked.path["place"])
    with (
        Stores(asked.settings) as stores,
        closing(stores.history) as history,
        closing(DeadLetters(asked.settings)) as desk,
    ):
        stores.check_partitions()
        story = story_of(stores, desk, event_at(history, mark))
    envelope = story.event.envelope
    return {
        "place": asked.path["place"],
        "event": envelope,
        "type": event_name(envelope.event),
        "at": iso(envelope.at),
        "position": story.event.position,
        "lies": lies_at(story.where),
        "fates": [(fate, told(fate)) for fate in story.fates],
        "said": json_text(said_json(envelope.event)),
    }


def place_in(text: str) -> BackwardMark:
    """Return the place that a path names.

    Raises:
        MissingEvent: it names none.
    """
    try:
        found = parse_mark(text)
    except ConfigError:
        found = None
    if found is None:
        raise MissingEvent(f"{text!r} is no place of an event")
    return found


PAGE: Final = Page(path="/events/{place}", template="event.html", show=show)
