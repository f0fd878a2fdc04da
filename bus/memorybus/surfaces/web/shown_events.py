"""Events as rows of a table; pure."""

from typing import Any

from memorybus.history.backward import BackwardMark
from memorybus.log.entry import LoggedEvent
from memorybus.operations.events.search import format_mark
from memorybus.operations.events.words import SearchWords
from memorybus.surfaces.views.events import summary
from memorybus.surfaces.views.safe import one_line
from memorybus.text.display import event_name, iso

_LONGEST = 300
"""Characters of what was said that a row shows."""


_TYPE = 24
"""Characters of a type; only one that nobody knows is longer."""


def place_of(event: LoggedEvent) -> str:
    """Return an event's place as links name it."""
    return format_mark(BackwardMark(event.position.partition, event.position.entry)) or ""


def row(event: LoggedEvent, words: SearchWords) -> dict[str, Any]:
    """Return what a row shows of an event: of what was said, the part near the words."""
    envelope = event.envelope
    said = words.excerpt(envelope.event)
    return {
        "place": place_of(event),
        "id": envelope.id,
        "at": iso(envelope.at),
        "type": one_line(event_name(envelope.event), _TYPE),
        "session": envelope.session.id,
        "user": envelope.scope.user,
        "said": one_line(said, _LONGEST) if said else summary(envelope.event, _LONGEST),
    }
