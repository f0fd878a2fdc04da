"""The graph of sessions: which one continues which, as pure functions and a fold over events.

This table says how a session comes from another, and which root it gets. The root is part of the
order key (see `redis.keys.session_key`):

===========  =========================  ======================================================
reason       the session after it       root
===========  =========================  ======================================================
start        a new one                  its own
branch       a new one                  kept: both branches stay in one order
compression  the same or a new one      kept; in place the epoch grows
rewind       the same                   kept; the epoch grows
resume       one that existed before    its own; the two roots stay and are only linked
delegation   a new one, for a sub-task  its own: children run side by side, and a child's poison
                                        event parks the child alone (G6); the parent is linked
reset        a new one                  its own: a reset does not continue
===========  =========================  ======================================================

The epoch grows where turn ordinals start over, because they are part of idempotency keys (G2).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from memorybus.errors import InvalidEvent
from memorybus.events import (
    Delegated,
    Envelope,
    Reason,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)


class Identity(NamedTuple):
    """Identifies a session among all sessions, even if others have the same id."""

    agent: str  # the agent that owns the session
    user: str  # the person it talks with
    workspace: str  # the workspace; empty for none
    session: str  # the session's id

    def with_session(self, session: str) -> "Identity":
        """Return another session of the same agent, person and workspace."""
        return self._replace(session=session)


def identity_of(scope: Scope, session: str) -> Identity:
    return Identity(scope.agent, scope.user, scope.workspace, session)


CONTINUING_REASONS: frozenset[Reason] = frozenset({"branch", "compression", "resume", "rewind"})
"""Reasons after which the same conversation continues: its warm results are carried over."""

LINKING_REASONS: frozenset[Reason] = frozenset({"resume", "reset"})
"""Reasons after which two sessions are linked, and neither is the other's parent."""


def start(session_id: str) -> SessionRef:
    """Return the root of a new lineage. Raises `InvalidEvent` if the id is empty."""
    return SessionRef(id=_check_new_id(session_id), root=session_id)


def branch(ref: SessionRef, new_id: str) -> SessionRef:
    """Return a session that continues `ref`, which may also continue by itself."""
    return SessionRef(id=_check_new_id(new_id, ref), root=ref.root, parent=ref.id)


def compress(ref: SessionRef, new_id: str | None = None) -> SessionRef:
    """Return the session after a compression: the same one, or `new_id` if that differs."""
    if new_id is None or new_id == ref.id:
        return msgspec.structs.replace(ref, epoch=ref.epoch + 1)
    return SessionRef(id=_check_new_id(new_id), root=ref.root, parent=ref.id)


def resume(ref: SessionRef | None, session_id: str) -> SessionRef:
    """Return `ref`, the session as it was left, or a new root if `ref` is None."""
    if ref is None:
        return start(session_id)
    if ref.id != session_id:
        raise InvalidEvent(f"cannot resume {session_id!r} from what is known of {ref.id!r}")
    return ref


def reset(ref: SessionRef, new_id: str) -> SessionRef:
    epoch = ref.epoch + 1 if new_id == ref.id else 0
    return SessionRef(id=_check_new_id(new_id), root=new_id, epoch=epoch)


def rewind(ref: SessionRef) -> SessionRef:
    """Return the session after its last turns were undone."""
    return msgspec.structs.replace(ref, epoch=ref.epoch + 1)


def delegate(ref: SessionRef, child_id: str) -> SessionRef:
    """Return a sub-agent's session. Raises `InvalidEvent` for `ref`'s own or an empty id."""
    return SessionRef(id=_check_new_id(child_id, ref), root=child_id, parent=ref.id)


_STEPS: Mapping[str, Callable[[SessionRef, str], SessionRef]] = MappingProxyType({
    "branch": branch, "compression": compress, "delegation": delegate, "reset": reset,
    "rewind": lambda ref, _: rewind(ref),
})  # fmt: skip


def follow(ref: SessionRef, new_id: str, reason: Reason, stored: SessionRef | None) -> SessionRef:
    """Return the session that follows `ref`; `stored` is what is known of `new_id`, if anything."""
    if reason == "reset" and stored is not None:
        return reset(stored, new_id)  # the id is used again, so its epoch must be above all before
    step = _STEPS.get(reason)
    return step(ref, new_id) if step else resume(stored, new_id)


def switch_event(
    before: SessionRef, after: SessionRef, reason: Reason, retracted: tuple[str, ...] = ()
) -> SessionSwitched:
    """Return the event that is published for a step; as in Hermes, a rewind names no parent."""
    return SessionSwitched(
        new_id=after.id,
        parent="" if reason == "rewind" else before.id,
        reason=reason,
        reset=reason == "reset",
        rewound=reason == "rewind",
        retracted=retracted,
    )


def _check_new_id(session_id: str, beside: SessionRef | None = None) -> str:
    if not session_id or (beside and beside.id == session_id):
        raise InvalidEvent(f"{session_id!r} cannot name a new session: it is empty or its parent's")
    return session_id


class OriginClaim(msgspec.Struct, frozen=True, order=True):
    """What one event says of a session's origin. The least claim counts, whatever the order."""

    rank: int  # how reliable the event is, 0 the most (see `_own_claim`)
    at: int  # its time (ms); decides between equal ranks
    event_id: str  # decides between equal times
    root: str  # the first session of the lineage
    parent: str = ""  # where the session came from; "" if it has no parent
    reason: str = ""  # how it came from there; "" if the event does not say


def claims(envelope: Envelope) -> Iterator[tuple[str, OriginClaim]]:
    """Yield what an event says of its own session, and of one it delegated to, by their ids."""
    event, parent = envelope.event, envelope.session.id
    yield parent, _own_claim(envelope)
    if isinstance(event, Delegated) and event.child_session not in {"", parent}:
        child = event.child_session
        yield child, OriginClaim(1, envelope.at, envelope.id, child, parent, "delegation")


def _own_claim(envelope: Envelope) -> OriginClaim:
    """Return what an event says of its own session's origin.

    Ranks: 0: the session began, and the event names its parent and the reason. 1: a parent says
    that it delegated to the session. 2: it began, and the event says no more. 3: it continued. 4:
    the event only happened in it.
    """
    ref, event = envelope.session, envelope.event
    rank, parent, reason = 4, ref.parent, ""
    if isinstance(event, SessionStarted | SessionSwitched):
        reason = event.reason
        parent = (
            ref.parent if reason in LINKING_REASONS else previous_session(envelope) or ref.parent
        )
        began = isinstance(event, SessionStarted) or event.parent != ref.id
        knows = parent and reason != "start"
        rank = (0 if knows else 2) if began and reason not in {"resume", "rewind"} else 3
    return OriginClaim(rank, envelope.at, envelope.id, ref.root or ref.id, parent, reason)


def previous_session(envelope: Envelope) -> str:
    """Return the other session that a start or a switch names; "" if there is none."""
    event = envelope.event
    named = event.parent if isinstance(event, SessionStarted | SessionSwitched) else ""
    return "" if named == envelope.session.id else named


class Node(msgspec.Struct, frozen=True):
    """Everything known of one session. Times are milliseconds, 0 if unknown."""

    identity: Identity  # the session's id and owner
    origin: OriginClaim  # the claim that counts
    epoch: int = 0  # the highest epoch seen
    # the time and the id of the event that gave the newest title, then the title
    titled: tuple[int, str, str] = (0, "", "")
    started_at: int = 0
    last_at: int = 0
    ended_at: int = 0
    turns: int = 0  # how many turns were completed
    # sessions that it was resumed or reset from: related, but no parents
    links: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """Its id; sessions of other people may have the same."""
        return self.identity.session

    @property
    def root(self) -> str:
        return self.origin.root

    @property
    def parent(self) -> str:
        """Where it came from, as the events say; it may be unknown, or hostile text."""
        return self.origin.parent

    @property
    def above(self) -> Identity:
        """The parent: a session comes from one of its own agent, person and workspace."""
        return self.identity.with_session(self.parent)

    @property
    def ended(self) -> bool:
        """Whether nothing followed its last end; hosts end a session at every compression."""
        return 0 < self.last_at <= self.ended_at


class Lineage:
    """The graph of the sessions in some events. `fold` makes it, and it never changes.

    Every fact in it is a minimum, a maximum, a union or a count of distinct event ids. So the order
    of the events does not matter (those of different partitions come in any order), and a repeated
    event changes nothing. The graph is a forest whatever the events claim: no session has itself or
    an unknown session as its parent, and the oldest session of a circle becomes its root.
    """

    def __init__(self, nodes: Mapping[Identity, Node]) -> None:
        self.nodes: Mapping[Identity, Node] = MappingProxyType(dict(nodes))
        self._children: dict[Identity | None, list[Node]] = {}
        parents = _parents(self.nodes)
        for node in sorted(self.nodes.values(), key=_age):
            self._children.setdefault(parents.get(node.identity), []).append(node)

    def roots(self) -> tuple[Node, ...]:
        return tuple(self._children.get(None, ()))

    def children(self, session: Identity) -> tuple[Node, ...]:
        return tuple(self._children.get(session, ()))

    def walk(self) -> Iterator[tuple[int, Node]]:
        """Yield every session once with its depth, each before its children, oldest first."""
        stack = [(0, node) for node in reversed(self.roots())]
        while stack:
            depth, node = stack.pop()
            yield depth, node
            stack.extend((depth + 1, child) for child in reversed(self.children(node.identity)))


def fold(envelopes: Iterable[Envelope]) -> Lineage:
    nodes: dict[Identity, Node] = {}
    turn_ids: set[str] = set()
    for envelope in envelopes:
        session = identity_of(envelope.scope, envelope.session.id)
        if session.session:
            for claimed, claim in claims(envelope):
                _add_claim(nodes, session.with_session(claimed), claim)
            nodes[session] = _with_event(nodes[session], envelope, turn_ids)
    return Lineage(nodes)


def _add_claim(nodes: dict[Identity, Node], session: Identity, claim: OriginClaim) -> None:
    node = nodes.get(session)
    if node is None:
        nodes[session] = Node(session, claim)
    elif claim < node.origin:
        nodes[session] = msgspec.structs.replace(node, origin=claim)


def _with_event(node: Node, envelope: Envelope, turn_ids: set[str]) -> Node:
    event, at = envelope.event, max(envelope.at, 0)
    titled, links, turns = node.titled, node.links, node.turns
    if isinstance(event, TurnCompleted) and envelope.id not in turn_ids:
        turn_ids.add(envelope.id)
        turns += 1
    if isinstance(event, SessionStarted) and event.title:
        titled = max(titled, (at, envelope.id, event.title))
    if isinstance(event, SessionStarted | SessionSwitched) and event.reason in LINKING_REASONS:
        links |= {previous_session(envelope)} - {""}
    return Node(
        identity=node.identity,
        origin=node.origin,
        epoch=max(node.epoch, envelope.session.epoch),
        titled=titled,
        started_at=min(node.started_at or at, at or node.started_at),
        last_at=max(node.last_at, at),
        ended_at=max(node.ended_at, at if isinstance(event, SessionEnded) else 0),
        turns=turns,
        links=links,
    )


def _parents(nodes: Mapping[Identity, Node]) -> dict[Identity, Identity]:
    """Return each session's parent in the forest; the oldest session of a circle gets none."""
    parents = {one: node.above for one, node in nodes.items() if node.above in nodes}
    settled: set[Identity] = set()
    for session in nodes:
        trail: dict[Identity, None] = {}
        here = session
        while here in parents and here not in settled and here not in trail:
            trail[here] = None
            here = parents[here]
        if here in trail:
            met = list(trail)
            del parents[min(met[met.index(here) :], key=lambda one: _age(nodes[one]))]
        settled.update(trail)
    return parents


def _age(node: Node) -> tuple[int, Identity]:
    return node.started_at, node.identity
