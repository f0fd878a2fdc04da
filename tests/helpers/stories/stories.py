"""Short stories of sessions that switch, branch, rewind, delegate and speak late."""

import random
from collections.abc import Callable
from typing import Final

from memorybus.events import (
    AnyEvent,
    Delegated,
    Envelope,
    Reason,
    Scope,
    SessionRef,
    SessionStarted,
    TurnCompleted,
)
from memorybus.ids import derived_id
from memorybus.lineage import graph
from memorybus.redis.keys import session_key

_SWITCHES: Final[tuple[Reason, ...]] = ("compression", "resume", "reset", "rewind")


class Story:
    """Six events, hence 720 orders, in the one in which they happened.

    Attributes:
        envelopes: the events.
        homes: the session that each turn was said in, by event id.
    """

    def __init__(self, rng: random.Random, name: str) -> None:
        self.envelopes: list[Envelope] = []
        self.homes: dict[str, SessionRef] = {}
        self._rng = rng
        self._name = name
        first = graph.start(f"{name}-0")
        self._known = {first.id: first}
        self._here = first
        self._add(first, SessionStarted())
        any_step = self._rng.choice([self._turn, self._branch, self._switch, self._child])
        steps = [self._turn, self._turn, self._branch, self._switch, any_step]
        self._rng.shuffle(steps)
        for step in steps:
            step()

    def _add(self, ref: SessionRef, event: AnyEvent) -> None:
        number = len(self.envelopes)
        envelope = Envelope(
            id=derived_id(self._name, number),
            key=session_key(Scope(), ref.root),
            scope=Scope(),
            session=ref,
            at=1_000 + number,
            event=event,
        )
        self.envelopes.append(envelope)
        if isinstance(event, TurnCompleted):
            self.homes[envelope.id] = ref

    def _turn(self) -> None:
        """Somebody speaks, here or, late, in a session that was left."""
        ref = self._rng.choice([self._here, *self._known.values()])
        self._add(ref, TurnCompleted(user="?", ordinal=len(self.envelopes)))

    def _branch(self) -> None:
        child = graph.branch(self._here, self._fresh())
        self._known[child.id] = child
        self._add(child, SessionStarted(parent=self._here.id, reason="branch"))

    def _child(self) -> None:
        child = graph.delegate(self._here, self._fresh())
        self._known[child.id] = child
        self._add(self._here, Delegated(task="t", result="r", child_session=child.id))

    def _switch(self) -> None:
        reason = self._rng.choice(_SWITCHES)
        target = self._target(reason)
        after = graph.follow(self._here, target, reason, self._known.get(target))
        self._add(after, graph.switch_event(self._here, after, reason))
        self._known[after.id] = self._here = after

    def _target(self, reason: Reason) -> str:
        choices: dict[str, Callable[[], str]] = {
            "resume": lambda: self._rng.choice(list(self._known)),
            "rewind": lambda: self._here.id,
        }
        return choices.get(reason, self._fresh)()

    def _fresh(self) -> str:
        return f"{self._name}-{len(self._known)}"
