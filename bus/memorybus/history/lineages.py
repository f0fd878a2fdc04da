"""Resolves lineages into sessions: which session came from which; pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from memorybus.events import Delegated, Envelope, SessionStarted, SessionSwitched
from memorybus.lineage.identity import Identity, identity_of
from memorybus.query.query import Query, row_of

_LINKING_REASONS = frozenset({"resume", "reset", "rewind"})
"""Reasons of switches whose event names an earlier session that is not the parent."""


def expand_lineages(query: Query, envelopes: Iterable[Envelope]) -> Query:
    """Return a query that names sessions instead of lineages.

    A session that the query names counts in every scope that the query wants. Its descendants have
    the same agent, person and workspace.

    Args:
        query: the query with lineages.
        envelopes: the beginnings, switches and delegations of the history, in any order.
    """
    children: defaultdict[Identity, set[Identity]] = defaultdict(set)
    ours = Query(agents=query.agents, users=query.users, workspaces=query.workspaces)
    for envelope in (one for one in envelopes if ours.wants(row_of(one))):
        identity = identity_of(envelope.scope, "")
        for parent, child in _edges(envelope):
            children[identity.with_session(parent)].add(identity.with_session(child))
    roots = [one for one in children if one.session in query.lineages]
    found = {one.session for one in closure(roots, children)}
    sessions = tuple(sorted({*query.sessions, *query.lineages, *found}))
    return msgspec.structs.replace(query, lineages=(), sessions=sessions)


def closure(
    roots: Iterable[Identity], children: Mapping[Identity, Iterable[Identity]]
) -> set[Identity]:
    """Return some sessions and all their descendants; a cycle is walked once."""
    found: set[Identity] = set()
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
    if isinstance(event, SessionStarted | SessionSwitched) and event.reason not in _LINKING_REASONS:
        yield event.parent, ref.id
