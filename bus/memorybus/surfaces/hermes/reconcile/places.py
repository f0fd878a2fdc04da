"""Where a stored session stands in the lineage, and whose it is: pure but for what it looks up."""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from memorybus.events import SessionRef
from memorybus.surfaces.hermes.transcripts.state_db import StoredSession

Origin = Literal["start", "branch", "compression"]

ENDS_NOTHING = frozenset(("compression", "branched", "resumed_other"))
"""Reasons of Hermes for closing a session's row while the conversation goes on."""


class LineagePlace(msgspec.Struct, frozen=True):
    """Where a session stands.

    Attributes:
        ref: its place in the lineage.
        origin: how it came from its parent.
        family: the first session of its conversation in ``state.db``: copies are of its turns. The
            lineage may have another root, if the plugin came in the middle of a conversation.
    """

    ref: SessionRef
    origin: Origin
    family: str


def origin_of(session: StoredSession, parent: StoredSession | None) -> Origin | None:
    """Return how a session came from its parent; None for a sub-agent's.

    As ``hermes_state.py`` tells them apart: a branch carries a mark or follows a parent that was
    closed as branched, a compression follows one that was closed as compressed, and every other
    child is a sub-agent.
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
    """Return where a session stands, None if it is a sub-agent's.

    Args:
        session: the session.
        stored: a session of the same ``state.db`` by its id.
        known: what the log or this host knows of a session's place: it holds, for the session
            itself and for those it continues.
    """
    origin = origin_of(session, stored(session.parent))
    if origin is None:
        return None
    chain = list(_ancestors(session, stored))
    there = known(session.id)
    ref = there or _new_ref(session, origin, [known(one.id) for one in chain[1:]], chain[-1].id)
    return LineagePlace(ref, origin, chain[-1].id)


def _ancestors(
    session: StoredSession, stored: Callable[[str], StoredSession | None]
) -> Iterator[StoredSession]:
    """Yield a session and those it continues, up to the first; a circle of parents is cut."""
    met: set[str] = set()
    here: StoredSession | None = session
    while here is not None and here.id not in met:
        met.add(here.id)
        yield here
        parent = stored(here.parent)
        here = parent if origin_of(here, parent) in {"branch", "compression"} else None


def _new_ref(
    session: StoredSession, origin: Origin, earlier: list[SessionRef | None], first: str
) -> SessionRef:
    """Return the place of a session that nobody knows, after those it continues."""
    if origin == "start":
        return SessionRef(id=session.id, root=session.id)
    root = next((ref.root for ref in earlier if ref is not None), first)
    return SessionRef(id=session.id, root=root, parent=session.parent)
