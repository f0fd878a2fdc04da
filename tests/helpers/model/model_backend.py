"""A backend in memory, shared by all workers of a model run: it keeps whatever it is told.

Its list of effects has no unique constraint, so that what happens twice shows. What an event does
is in its text: ``permanent`` is refused for good, ``transient:2`` fails twice.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from memorybus.errors import LeaseLost, Permanent, Transient, Unavailable
from memorybus.events import TurnCompleted
from memorybus_providers.base import (
    Capabilities,
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    ProviderConfig,
    TransactionalProvider,
)

IN_FLIGHT = "call.begun"
"""The crash point between the provider's check of its lease and the backend's effect."""

CALL_POINTS = (IN_FLIGHT, "call.stored")
STORE_POINTS = ("store.before_commit", "store.after_commit")


class Kept(msgspec.Struct, frozen=True):
    """One effect."""

    event_id: str
    key: str
    partition: int


class Backend:
    """What survives any worker.

    Attributes:
        effects: in the order in which they happened.
        lanes: a transactional store's checkpoints.
        down: whether it answers nothing at present.
        tries: calls by event, those that failed included.
    """

    def __init__(self) -> None:
        self.effects: list[Kept] = []
        self.lanes: dict[str, Progress] = {}
        self.down = False
        self.tries: Counter[str] = Counter()

    def holds(self, event_id: str) -> bool:
        return any(kept.event_id == event_id for kept in self.effects)

    def meet(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Answer a call, or fail as the event's text says."""
        self.answer()
        self.tries[ctx.event_id] += 1
        fate, _, times = event.assistant.partition(":")
        if fate == "permanent":
            raise Permanent("it is refused for good")
        if fate == "transient" and self.tries[ctx.event_id] <= int(times):
            raise Transient("try again")

    def answer(self) -> None:
        """Answer anything, unless it is down."""
        if self.down:
            raise Unavailable("the backend is down")


class Blind(MemoryProvider):
    """Keeps what it is told, twice if told twice."""

    kind = "model"
    capabilities = Capabilities(handles=frozenset({TurnCompleted}))

    def __init__(self, config: ProviderConfig, backend: Backend) -> None:
        super().__init__(config)
        self.backend = backend

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        self.backend.meet(event, ctx)
        self.config.crash(IN_FLIGHT)
        self.keep(Kept(ctx.event_id, ctx.session.root, ctx.position.partition))
        self.config.crash("call.stored")

    def keep(self, kept: Kept) -> None:
        self.backend.effects.append(kept)


class Keyed(Blind):
    """Takes the event id as its key."""

    delivery = "keyed"

    def keep(self, kept: Kept) -> None:
        """Have the effect, once."""
        if not self.backend.holds(kept.event_id):
            super().keep(kept)


class Lookup(Blind):
    """Can be asked."""

    delivery = "lookup"

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Say whether the effect has happened."""
        self.backend.answer()
        return self.backend.holds(event_id)


_SIDE = Capabilities(concurrent=True, handles=Blind.capabilities.handles)


class KeyedSide(Keyed):
    """As `Keyed`, for several keys at once."""

    capabilities = _SIDE


class LookupSide(Lookup):
    """As `Lookup`, for several keys at once."""

    capabilities = _SIDE


class Open:
    """One open transaction: what it would change, kept back until its end."""

    def __init__(self, backend: Backend, fence: Fence) -> None:
        self.effects: list[Kept] = []
        self._backend = backend
        self._fence = fence
        self._progress: Progress | None = None

    def check(self) -> None:
        """Refuse a stale owner."""
        known = self._backend.lanes.get(self._fence.lane)
        if known is not None and known.epoch > self._fence.epoch:
            raise LeaseLost(f"{self._fence.lane}: {known.epoch} > {self._fence.epoch}")

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Look into the ledger, which is the list of effects."""
        return frozenset(event_id for event_id in event_ids if self._backend.holds(event_id))

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Note the lane's progress; the effects are the ledger."""
        self._progress = progress

    def commit(self) -> None:
        """Change the store, at once."""
        self.check()
        self._backend.effects += self.effects
        if self._progress is not None:
            self._backend.lanes[self._fence.lane] = self._progress


class Transactional(Blind, TransactionalProvider):
    """Effects and checkpoint as one; the epoch is looked at again when it commits."""

    delivery = "transactional"
    _open: Open | None = None

    def progress(self, lane: str) -> Progress | None:
        self.backend.answer()
        return self.backend.lanes.get(lane)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Any]:
        """Keep everything back until the end."""
        self.backend.answer()
        self._open = Open(self.backend, fence)
        self._open.check()
        try:
            yield self._open
            self.config.crash("store.before_commit")
            self._open.commit()
        finally:
            self._open = None
        self.config.crash("store.after_commit")

    def keep(self, kept: Kept) -> None:
        """Have the effect when the transaction ends."""
        assert self._open is not None, "a transactional hook is called in a transaction"
        self._open.effects.append(kept)


KINDS: dict[str, Callable[[ProviderConfig, Backend], Blind]] = {
    "transactional": Transactional,
    "keyed": Keyed,
    "keyed, side by side": KeyedSide,
    "lookup": Lookup,
    "lookup, side by side": LookupSide,
    "blind": Blind,
}


def points(kind: str) -> tuple[str, ...]:
    """Return the crash points of a kind's own."""
    return CALL_POINTS + (STORE_POINTS if kind == "transactional" else ())
