"""Formats events as rows of a table; pure."""

from typing import Any

from memorybus.history.backward import BackwardMark
from memorybus.log.entry import LoggedEvent
from memorybus.text.display import event_name, iso

from memorybus_console.operations.events.search import SearchWords, format_mark
from memorybus_console.views.events import summary
from memorybus_console.views.render import one_line

_MAX_TEXT_CHARS = 300  # the most characters of an event's text in a row


_MAX_TYPE_CHARS = 24  # the most characters of a type; only an unknown type is longer


def place_of(event: LoggedEvent) -> str:
    """Return an event's position as links write it."""
    return format_mark(BackwardMark(event.position.partition, event.position.entry)) or ""


def event_row(event: LoggedEvent, words: SearchWords) -> dict[str, Any]:
    """Return a table row of an event, with the part of its text near the searched words."""
    envelope = event.envelope
    said = words.excerpt(envelope.event)
    return {
        "place": place_of(event),
        "id": envelope.id,
        "at": iso(envelope.at),
        "type": one_line(event_name(envelope.event), _MAX_TYPE_CHARS),
        "session": envelope.session.id,
        "user": envelope.scope.user,
        "said": one_line(said, _MAX_TEXT_CHARS)
        if said
        else summary(envelope.event, _MAX_TEXT_CHARS),
    }
