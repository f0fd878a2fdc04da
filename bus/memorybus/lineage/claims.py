"""What one event says of where sessions come from; pure. See `lineage`, which folds the claims."""

from collections.abc import Iterator

import msgspec

from memorybus.events import Delegated, Envelope, Reason, SessionStarted, SessionSwitched

LINKING: frozenset[Reason] = frozenset({"resume", "reset"})
"""Reasons after which two sessions are linked, and neither is the other's parent."""


class Claim(msgspec.Struct, frozen=True, order=True):
    """What one event says of a session's origin: the least claim holds, whatever the order.

    `rank` tells how good a witness the event is, 0 the best (see `_own`); `at` (ms) and
    `event_id` decide between equals; `reason` is empty if the event does not tell.
    """

    rank: int
    at: int
    event_id: str
    root: str
    parent: str = ""
    reason: str = ""


def claims(envelope: Envelope) -> Iterator[tuple[str, Claim]]:
    """Yield what an event says of its own session, and of one it delegated to, by their ids."""
    event, parent = envelope.event, envelope.session.id
    yield parent, _own(envelope)
    if isinstance(event, Delegated) and event.child_session not in {"", parent}:
        child = event.child_session
        yield child, Claim(1, envelope.at, envelope.id, child, parent, "delegation")


def _own(envelope: Envelope) -> Claim:
    """Return what an event says of its own session's origin.

    Ranks: 0 it began and knows from where and how; 1 a parent says it delegated to it; 2 it began,
    by its own account simply so, as a child does that was not told; 3 it went on; 4 it was seen.
    """
    ref, event = envelope.session, envelope.event
    rank, parent, reason = 4, ref.parent, ""
    if isinstance(event, SessionStarted | SessionSwitched):
        reason = event.reason
        parent = ref.parent if reason in LINKING else left(envelope) or ref.parent
        began = isinstance(event, SessionStarted) or event.parent != ref.id
        knows = parent and reason != "start"
        rank = (0 if knows else 2) if began and reason not in {"resume", "rewind"} else 3
    return Claim(rank, envelope.at, envelope.id, ref.root or ref.id, parent, reason)


def left(envelope: Envelope) -> str:
    """Return the other session that a beginning or a switch names; empty if there is none."""
    event = envelope.event
    named = event.parent if isinstance(event, SessionStarted | SessionSwitched) else ""
    return "" if named == envelope.session.id else named
