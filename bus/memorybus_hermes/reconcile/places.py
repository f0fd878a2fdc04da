"""Finds the place of a stored session in the lineage; pure except for the look-ups it is given."""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
from memorybus.events import SessionRef

from memorybus_hermes.transcripts.state_db import StoredSession

SessionOrigin = Literal["start", "branch", "compression"]

ENDS_NOTHING = frozenset(("compression", "branched", "resumed_other"))
"""The reasons for which Hermes closes a session's row although the conversation continues."""


class LineagePlace(msgspec.Struct, frozen=True):
    """Where a session stands.

    Attributes:
        family: the id of the first session of its conversation in ``state.db``; sessions of one
            family contain copies of each other's turns. The lineage has another root if the plugin
            was installed in the middle of the conversation.
    """

    ref: SessionRef
    origin: SessionOrigin
    family: str


def origin_of(session: StoredSession, parent: StoredSession | None) -> SessionOrigin | None:
    """Return how a session came from its parent; None for a sub-agent's session.

    The rules are those of ``hermes_state.py``. A branch carries a mark, or its parent was closed as
    branched. The parent of a compression was closed as compressed. Every other child is a
    sub-agent's session.
    """
    if session.delegated:
        return None
    if not session.parent or parent is None:
        return "start"
    closed_before = 0 < parent.ended_at <= session.started_at
    if session.branched or (parent.end_reason == "branched" and closed_before):
        return "branch"
    return "compression" if parent.end_reason == "compression" else None


def find_place(
    session: StoredSession,
    stored: Callable[[str], StoredSession | None],
    known: Callable[[str], SessionRef | None],
) -> LineagePlace | None:
    """Return where a session stands; None for a sub-agent's session.

    Args:
        stored: returns a session of the same ``state.db`` by its id.
        known: returns the place that the log or this host knows of a session. Such a place counts,
            for the session itself and for the sessions it continues.
    """
    origin = origin_of(session, stored(session.parent))
    if origin is None:
        return None
    chain = list(_ancestors(session, stored))
    own = known(session.id)
    ref = own or _new_ref(
        session, origin, [known(earlier.id) for earlier in chain[1:]], chain[-1].id
    )
    return LineagePlace(ref, origin, chain[-1].id)


def _ancestors(
    session: StoredSession, stored: Callable[[str], StoredSession | None]
) -> Iterator[StoredSession]:
    """Yield a session and those it continues, up to the first; stop at a circle of parents."""
    visited: set[str] = set()
    here: StoredSession | None = session
    while here is not None and here.id not in visited:
        visited.add(here.id)
        yield here
        parent = stored(here.parent)
        here = parent if origin_of(here, parent) in {"branch", "compression"} else None


def _new_ref(
    session: StoredSession, origin: SessionOrigin, earlier: list[SessionRef | None], first: str
) -> SessionRef:
    """Return the place of a session that nobody knows yet, behind the sessions it continues."""
    if origin == "start":
        return SessionRef(id=session.id, root=session.id)
    root = next((ref.root for ref in earlier if ref is not None), first)
    return SessionRef(id=session.id, root=root, parent=session.parent)
