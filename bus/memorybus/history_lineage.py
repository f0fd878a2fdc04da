"""Lineages as sessions: which ones came from which; pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from memorybus.events import Delegated, Envelope, SessionStarted, SessionSwitched
from memorybus.query import Query

_LINKING = frozenset({"resume", "reset", "rewind"})
"""Such a switch names where the conversation came from, which is no parent."""


def descendants(query: Query, envelopes: Iterable[Envelope]) -> Query:
    """Return a query whose lineages stand as sessions.

    Args:
        query: what is wanted.
        envelopes: the beginnings, switches and delegations of the history, in any order.
    """
    children: defaultdict[str, set[str]] = defaultdict(set)
    for envelope in envelopes:
        for parent, child in _edges(envelope):
            children[parent].add(child)
    found = closure(query.lineages, children)
    sessions = tuple(sorted({*query.sessions, *found}))
    return msgspec.structs.replace(query, lineages=(), sessions=sessions)


def closure(roots: Iterable[str], children: Mapping[str, Iterable[str]]) -> set[str]:
    """Return some sessions and all that came from them; a circle is walked once."""
    found: set[str] = set()
    todo = list(roots)
    while todo:
        session = todo.pop()
        if session not in found:
            found.add(session)
            todo.extend(children.get(session, ()))
    return found


def _edges(envelope: Envelope) -> Iterable[tuple[str, str]]:
    event, ref = envelope.event, envelope.session
    if isinstance(event, Delegated):
        yield ref.id, event.child_session
        return
    if ref.parent:
        yield ref.parent, ref.id
    if isinstance(event, SessionStarted | SessionSwitched) and event.reason not in _LINKING:
        yield event.parent, ref.id
