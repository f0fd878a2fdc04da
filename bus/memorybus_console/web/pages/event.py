"""Shows one event: its content, where it is stored, and its outcome at each provider."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import ConfigError, MissingEvent
from memorybus.history.backward import BackwardMark
from memorybus.text.display import event_name, iso

from memorybus_console.operations.events.search import parse_mark
from memorybus_console.operations.events.story import event_at, story_of
from memorybus_console.operations.stores import Stores
from memorybus_console.views.events import describe_fate, describe_location, fields_json
from memorybus_console.views.safe import json_text
from memorybus_console.web.page import Page, PageRequest


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the event at a position, where it is stored, and its outcomes."""
    mark = parse_place(request.path["place"])
    with (
        Stores(request.settings) as stores,
        closing(stores.history) as history,
        closing(DeadLetters(request.settings)) as desk,
    ):
        stores.check_partitions()
        story = story_of(stores, desk, event_at(history, mark))
    envelope = story.event.envelope
    return {
        "place": request.path["place"],
        "event": envelope,
        "type": event_name(envelope.event),
        "at": iso(envelope.at),
        "position": story.event.position,
        "location": describe_location(story.where),
        "fates": [(fate, describe_fate(fate)) for fate in story.fates],
        "said": json_text(fields_json(envelope.event)),
    }


def parse_place(text: str) -> BackwardMark:
    """Return the position that a path names.

    Raises:
        MissingEvent: the text is no position.
    """
    try:
        found = parse_mark(text)
    except ConfigError:
        found = None
    if found is None:
        raise MissingEvent(f"{text!r} is not the position of an event")
    return found


PAGE: Final = Page(path="/events/{place}", template="event.html", show=show)
