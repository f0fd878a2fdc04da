"""What was published, as the log and the archive have it."""

from contextlib import closing
from typing import Any

from memorybus.config.settings import Settings
from memorybus.events import Envelope, Event
from memorybus_console.operations.journal import open_history


def envelopes(settings: Settings) -> list[Envelope]:
    """Return all events in the order in which Redis took them."""
    with closing(open_history(settings)) as history:
        return [logged.envelope for logged in history.scan()]


def published(settings: Settings, *kinds: type[Event]) -> list[Any]:
    """Return the events of some kinds in the order of the log."""
    events = [envelope.event for envelope in envelopes(settings)]
    return [event for event in events if isinstance(event, kinds)]
