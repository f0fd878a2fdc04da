"""The ids by which facts are known outside the database: functions of the events alone; pure.

A row's number says in which order the keys came by, which is another in a rebuild (G8). What was
said is named by its event: 4 hex digits that stand for its session, by which it is looked up, the
last 10 of its event's id, and the number of the piece within the event. What was kept may come by
several events, in any order, and is named by whose it is, its kind and its text: 14 hex digits.
A name means something only within its scope. Two facts of one scope share one by chance alone, in
a million facts once in 100,000 stores; they are judged together, in every order of events.
"""

from memorybus.events import Scope
from memorybus.ids import derived_id, text_digest

from memorybus_providers.holographic.texts import clean

PATTERN = r"^[0-9a-f]{14}(-[0-9]{1,9})?$"
"""What a name looks like."""

_MARK = 4
_EVENT = 5
_KEPT = 14


def mark_of(session: str) -> str:
    """Return the digits that stand for a session in the names of what was said in it."""
    return text_digest(clean(session))[:_MARK]


def said(mark: str, event_id: bytes, piece: int) -> str:
    """Return the name of something said: the piece `piece` of an event, from 0."""
    return f"{mark}{event_id[-_EVENT:].hex()}-{piece}"


def kept(scope: Scope, kind: str, content: str) -> str:
    """Return the name of something kept."""
    whose = (clean(part) for part in (scope.agent, scope.user, scope.workspace))
    return derived_id(*whose, kind, content)[-_KEPT:]


def session_mark(name: str) -> str | None:
    """Return the mark of the session in which a fact was said; None of one that was kept."""
    return name[:_MARK] if "-" in name else None
