"""Shows one event: its content, where it is stored, and its outcome at each provider."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import ConfigError, CorruptEnvelope, MissingEvent
from memorybus.events import Recalled, TurnCompleted
from memorybus.history.backward import BackwardMark
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent
from memorybus.text.display import event_name, iso

from memorybus_console.operations.events.search import parse_mark
from memorybus_console.operations.events.story import PromptShown, event_at, shown_to, story_of
from memorybus_console.operations.stores import Stores
from memorybus_console.views.events import (
    describe_fate,
    describe_location,
    describe_shown,
    fields_json,
)
from memorybus_console.views.render import json_text
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
        prompt = _prompt_of(stores.history, story.event)
    envelope = story.event.envelope
    return {
        "place": request.path["place"],
        "event": envelope,
        "type": event_name(envelope.event),
        "at": iso(envelope.at),
        "position": story.event.position,
        "location": describe_location(story.where),
        "fates": [(fate, describe_fate(fate)) for fate in story.fates],
        "prompt": prompt,
        "parts": [(describe_shown(part), part.events) for part in prompt.memories]
        if prompt
        else [],
        "content": json_text(fields_json(envelope.event)),
    }


def _prompt_of(history: History, event: LoggedEvent) -> PromptShown | None:
    """Return what the event's prompt was given; None if it has none, or there is no record."""
    if not isinstance(event.envelope.event, TurnCompleted | Recalled):
        return None
    try:
        return shown_to(history, event)
    except (MissingEvent, CorruptEnvelope):
        return None


def parse_place(text: str) -> BackwardMark:
    """Return the position that a path names."""
    try:
        mark = parse_mark(text)
    except ConfigError:
        mark = None
    if mark is None:
        raise MissingEvent(f"{text!r} is not the position of an event")
    return mark


PAGE: Final = Page(path="/events/{place}", template="event.html", show=show)
