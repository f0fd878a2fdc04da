"""The graph of sessions: which one goes on in which, as pure functions and a fold of events.

How a session comes from another, and what that does to its order key ``session:<root>``:

===========  =========================  ======================================================
reason       the session after it       root
===========  =========================  ======================================================
start        a new one                  its own
branch       a new one                  kept: both branches stay in one order
compression  the same or a new one      kept; in place the epoch grows
rewind       the same                   kept; the epoch grows
resume       one that was there before  its own; the two roots stay and are only linked
delegation   a new one, for a sub-task  its own: children run side by side, and a child's poison
                                        event parks the child alone (G6); the parent is linked
reset        a new one                  its own: a reset does not continue
===========  =========================  ======================================================

The epoch grows where turn ordinals start over, because they are part of idempotency keys (G2).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from memorybus.errors import InvalidEvent
from memorybus.events import (
    Delegated,
    Envelope,
    Reason,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)

CONTINUING: frozenset[Reason] = frozenset({"branch", "compression", "resume", "rewind"})
"""Reasons after which the conversation goes on: warm recall is carried over."""

_LINKING: frozenset[Reason] = frozenset({"resume", "reset"})


def start(session_id: str) -> SessionRef:
    """Return the root of a new lineage. Raises `InvalidEvent` if the id is empty."""
    return SessionRef(id=_new(session_id), root=session_id)


def branch(ref: SessionRef, new_id: str) -> SessionRef:
    """Return a continuation beside `ref`. Raises `InvalidEvent` for its own or an empty id."""
    return SessionRef(id=_new(new_id, ref), root=ref.root, parent=ref.id)


def compress(ref: SessionRef, new_id: str | None = None) -> SessionRef:
    """Return the session after a compression: in place, or under `new_id` if that is another."""
    if new_id is None or new_id == ref.id:
        return msgspec.structs.replace(ref, epoch=ref.epoch + 1)
    return SessionRef(id=_new(new_id), root=ref.root, parent=ref.id)


def resume(known: SessionRef | None, session_id: str) -> SessionRef:
    """Return a session as it was left, else a root. Raises `InvalidEvent` for another's `known`."""
    if known is None:
        return start(session_id)
    if known.id != session_id:
        raise InvalidEvent(f"cannot resume {session_id!r} from what is known of {known.id!r}")
    return known


def reset(ref: SessionRef, new_id: str) -> SessionRef:
    """Return the root of a new lineage; under the same id the epoch grows."""
    epoch = ref.epoch + 1 if new_id == ref.id else 0
    return SessionRef(id=_new(new_id), root=new_id, epoch=epoch)


def rewind(ref: SessionRef) -> SessionRef:
    """Return the session after its last turns were taken back."""
    return msgspec.structs.replace(ref, epoch=ref.epoch + 1)


def delegate(ref: SessionRef, child_id: str) -> SessionRef:
    """Return a sub-agent's session. Raises `InvalidEvent` for `ref`'s own or an empty id."""
    return SessionRef(id=_new(child_id, ref), root=child_id, parent=ref.id)


_STEPS: Mapping[str, Callable[[SessionRef, str], SessionRef]] = MappingProxyType({
    "branch": branch, "compression": compress, "delegation": delegate, "reset": reset,
    "rewind": lambda ref, _: rewind(ref),
})  # fmt: skip


def follow(ref: SessionRef, new_id: str, reason: Reason, known: SessionRef | None) -> SessionRef:
    """Return the session that follows `ref`; `known` is what is known of `new_id`, if anything.

    Raises `InvalidEvent` for an id that the reason does not allow.
    """
    if reason == "reset" and known is not None:
        return reset(known, new_id)  # begun anew: above every epoch it had
    step = _STEPS.get(reason)
    return step(ref, new_id) if step else resume(known, new_id)


def switched(before: SessionRef, after: SessionRef, reason: Reason) -> SessionSwitched:
    """Return what is published of a step; as in Hermes, a rewind names no parent."""
    return SessionSwitched(
        new_id=after.id,
        parent="" if reason == "rewind" else before.id,
        reason=reason,
        reset=reason == "reset",
        rewound=reason == "rewind",
    )


def _new(session_id: str, beside: SessionRef | None = None) -> str:
    if not session_id or (beside and beside.id == session_id):
        raise InvalidEvent(f"{session_id!r} cannot name a new session: it is empty or its parent's")
    return session_id


class Claim(msgspec.Struct, frozen=True, order=True):
    """What one event says of a session's origin: the least claim holds, whatever the order.

    `rank` tells how good a witness the event is, 0 the best (see `_own_claim`); `at` (ms) and
    `event_id` decide between equals; `reason` is empty if the event does not tell.
    """

    rank: int
    at: int
    event_id: str
    root: str
    parent: str = ""
    reason: str = ""


class Node(msgspec.Struct, frozen=True):
    """What is known of one session. Times are milliseconds, 0 if unknown.

    Attributes:
        origin: the claim that holds.
        epoch: the highest seen.
        titled: the newest title, after the time and the id of the event that gave it.
        turns: how many were completed.
        links: sessions it was resumed or reset from: related, yet no parents.
    """

    id: str
    origin: Claim
    epoch: int = 0
    titled: tuple[int, str, str] = (0, "", "")
    started_at: int = 0
    last_at: int = 0
    ended_at: int = 0
    turns: int = 0
    links: frozenset[str] = frozenset()

    @property
    def root(self) -> str:
        """The first session of its lineage."""
        return self.origin.root

    @property
    def parent(self) -> str:
        """Where it came from as the events have it; perhaps unknown here, or hostile."""
        return self.origin.parent

    @property
    def ended(self) -> bool:
        """Whether nothing followed its last end; hosts end a session at every compression."""
        return 0 < self.last_at <= self.ended_at


class Lineage:
    """The graph of the sessions that some events tell of. Never changes; `fold` makes another.

    Every fact in it is a least, a greatest, a union or a count of distinct event ids, so that the
    order of the events does not matter and a repeated one changes nothing (events of different
    partitions come in any order). The tree is a forest whatever the events claim: a parent nobody
    knows and a session's own id are no parents, and of a circle the oldest session is the root.
    """

    def __init__(self, nodes: Mapping[str, Node], turn_ids: frozenset[str]) -> None:
        """Arrange `nodes` as a forest; `turn_ids` are the turns counted in them."""
        self.nodes: Mapping[str, Node] = MappingProxyType(dict(nodes))
        self.turn_ids = turn_ids
        self._children: dict[str | None, list[Node]] = {}
        parents = _parents(self.nodes)
        for node in sorted(self.nodes.values(), key=_age):
            self._children.setdefault(parents.get(node.id), []).append(node)

    def roots(self) -> tuple[Node, ...]:
        """Return the sessions without a parent, oldest first."""
        return tuple(self._children.get(None, ()))

    def children(self, session_id: str) -> tuple[Node, ...]:
        """Return the sessions that came from one, oldest first; none if it is unknown."""
        return tuple(self._children.get(session_id, ()))

    def walk(self) -> Iterator[tuple[int, Node]]:
        """Yield every session once with its depth, each before its children, oldest first."""
        stack = [(0, node) for node in reversed(self.roots())]
        while stack:
            depth, node = stack.pop()
            yield depth, node
            stack.extend((depth + 1, child) for child in reversed(self.children(node.id)))


def fold(envelopes: Iterable[Envelope], onto: Lineage | None = None) -> Lineage:
    """Return the graph that `envelopes` tell of, on top of what `onto` knows."""
    nodes = dict(onto.nodes) if onto else {}
    turn_ids = set(onto.turn_ids) if onto else set()
    for envelope in envelopes:
        session_id = envelope.session.id
        if session_id:
            _claimed(nodes, session_id, _own_claim(envelope))
            nodes[session_id] = _told(nodes[session_id], envelope, turn_ids)
            _delegated(nodes, envelope)
    return Lineage(nodes, frozenset(turn_ids))


def _claimed(nodes: dict[str, Node], session_id: str, claim: Claim) -> None:
    node = nodes.get(session_id)
    if node is None:
        nodes[session_id] = Node(session_id, claim)
    elif claim < node.origin:
        nodes[session_id] = msgspec.structs.replace(node, origin=claim)


def _own_claim(envelope: Envelope) -> Claim:
    """Return what an event says of its own session's origin.

    Ranks: 0 it began and knows from where and how; 1 a parent says it delegated to it; 2 it began,
    by its own account simply so, as a child does that was not told; 3 it went on; 4 it was seen.
    """
    ref, event = envelope.session, envelope.event
    rank, parent, reason = 4, ref.parent, ""
    if isinstance(event, SessionStarted | SessionSwitched):
        reason = event.reason
        parent = ref.parent if reason in _LINKING else _left(envelope) or ref.parent
        began = isinstance(event, SessionStarted) or event.parent != ref.id
        knows = parent and reason != "start"
        rank = (0 if knows else 2) if began and reason not in {"resume", "rewind"} else 3
    return Claim(rank, envelope.at, envelope.id, ref.root or ref.id, parent, reason)


def _left(envelope: Envelope) -> str:
    """Return the other session that a beginning or a switch names; empty if there is none."""
    event = envelope.event
    named = event.parent if isinstance(event, SessionStarted | SessionSwitched) else ""
    return "" if named == envelope.session.id else named


def _told(node: Node, envelope: Envelope, turn_ids: set[str]) -> Node:
    event, at = envelope.event, max(envelope.at, 0)
    titled, links, turns = node.titled, node.links, node.turns
    if isinstance(event, TurnCompleted) and envelope.id not in turn_ids:
        turn_ids.add(envelope.id)
        turns += 1
    if isinstance(event, SessionStarted) and event.title:
        titled = max(titled, (at, envelope.id, event.title))
    if isinstance(event, SessionStarted | SessionSwitched) and event.reason in _LINKING:
        links |= {_left(envelope)} - {""}
    return Node(
        id=node.id,
        origin=node.origin,
        epoch=max(node.epoch, envelope.session.epoch),
        titled=titled,
        started_at=min(node.started_at or at, at or node.started_at),
        last_at=max(node.last_at, at),
        ended_at=max(node.ended_at, at if isinstance(event, SessionEnded) else 0),
        turns=turns,
        links=links,
    )


def _delegated(nodes: dict[str, Node], envelope: Envelope) -> None:
    event, parent = envelope.event, envelope.session.id
    if isinstance(event, Delegated) and event.child_session not in {"", parent}:
        child = event.child_session
        _claimed(nodes, child, Claim(1, envelope.at, envelope.id, child, parent, "delegation"))


def _parents(nodes: Mapping[str, Node]) -> dict[str, str]:
    """Return each session's parent in the forest, circles (of one, too) cut above the oldest."""
    parents = {node.id: node.parent for node in nodes.values() if node.parent in nodes}
    settled: set[str] = set()
    for session_id in nodes:
        trail: dict[str, None] = {}
        here = session_id
        while here in parents and here not in settled and here not in trail:
            trail[here] = None
            here = parents[here]
        if here in trail:
            met = list(trail)
            del parents[min(met[met.index(here) :], key=lambda i: _age(nodes[i]))]
        settled.update(trail)
    return parents


def _age(node: Node) -> tuple[int, str]:
    return node.started_at, node.id
