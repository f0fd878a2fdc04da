"""What a lane and a transactional provider exchange: fence, progress, transaction."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from memorybus.errors import LeaseLost


class Fence(msgspec.Struct, frozen=True):
    """The right to write to a lane: its name (``p07``) and the owner's epoch."""

    lane: str
    epoch: int


def refuse_stale(fence: Fence, seen: int | None) -> None:
    """Return unless a store has seen a newer owner of a lane (G5); `seen` is its epoch, if any.

    Raises:
        LeaseLost: the store has seen a newer owner.
    """
    if seen is not None and seen > fence.epoch:
        raise LeaseLost(
            f"lane {fence.lane}: epoch {fence.epoch} is stale, the store has seen {seen}",
            fenced=True,
        )


class Progress(msgspec.Struct, frozen=True):
    """How far a lane has come in the provider's own store. ``entry`` "0-0" is the beginning."""

    epoch: int
    entry: str
    n: int


class Transaction(Protocol):
    """One open transaction of a transactional provider."""

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `event_ids` that the ledger already holds."""
        ...

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Write the ids into the ledger and advance the lane; commits with everything else."""
        ...
