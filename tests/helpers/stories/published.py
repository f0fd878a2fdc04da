"""What was published, as the log and the archive have it."""

from contextlib import closing
from typing import Any

from memorybus.config.settings import Settings
from memorybus.events import Event
from memorybus_console.operations.journal import open_history


def published(settings: Settings, *kinds: type[Event]) -> list[Any]:
    """Return the events of some kinds in the order of the log."""
    with closing(open_history(settings)) as history:
        events = [logged.envelope.event for logged in history.scan()]
    return [event for event in events if isinstance(event, kinds)]
