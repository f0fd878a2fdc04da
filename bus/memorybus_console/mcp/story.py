"""Tells what was said in a session, as a model reads it; without what was undone."""

from collections.abc import Iterable, Iterator
from contextlib import closing

from memorybus.config.settings import Settings
from memorybus.events import Event, MemoryWritten, Scope, SessionSwitched, TurnCompleted
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import Query
from memorybus.text.display import iso

from memorybus_console.operations.journal import open_history

STORY_CHARS = 40_000
"""The most characters of a story; what was said first is left out."""


def read_story(settings: Settings, scope: Scope, session: str) -> str:
    """Return the turns and notes of a scope's session, the oldest first; "" if it has none.

    Raises:
        LogError: the history cannot be read.
    """
    query = Query(
        sessions=(session,),
        agents=(scope.agent,),
        users=(scope.user,),
        workspaces=(scope.workspace,),
    )
    with closing(open_history(settings)) as history:
        return tell(history.scan_backward(query))


def tell(newest_first: Iterable[LoggedEvent]) -> str:
    """Return the text of events that are given from the newest to the oldest; pure."""
    parts: list[str] = []
    room = STORY_CHARS
    for part in _without_undone(newest_first):
        room -= len(part)
        if room < 0:
            parts.append("…" if parts else f"{part[:STORY_CHARS]}…")
            break
        parts.append(part)
    return "\n\n".join(reversed(parts))


def _without_undone(newest_first: Iterable[LoggedEvent]) -> Iterator[str]:
    """Yield the text of each event; an undo comes before what it takes back in this order."""
    undone: set[str] = set()
    for logged in newest_first:
        event = logged.envelope.event
        if isinstance(event, SessionSwitched):
            undone.update(event.retracted)
        elif logged.envelope.id not in undone and (text := _text(event)):
            yield f"[{iso(logged.envelope.at)}]\n{text}"


def _text(event: Event) -> str:
    """Return what an event adds to a story; "" for nothing."""
    match event:
        case TurnCompleted():
            return f"person: {event.user}\nassistant: {event.assistant}"
        case MemoryWritten():
            return f"memory, {event.action}: {event.content or event.old_text}"
        case _:
            return ""
