"""What a chain keeps of somebody: given out, or marked as forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from memorybus_providers.base import StoredMemory
from memorybus_providers.mentisdb import ledger, thoughts
from memorybus_providers.mentisdb.thoughts import Thought
from memorybus_providers.remote.texts import parse_milliseconds

if TYPE_CHECKING:
    from memorybus_providers.mentisdb.store import Store


def of(store: Store, chain: str) -> Iterator[StoredMemory]:
    """Yield what a chain keeps, from the first thought on, also what was taken back."""
    kept = filter(store.ledger(chain).keeps, store.all(chain))
    yield from (_stored(one, chain) for one in kept)


def forget(store: Store, chain: str) -> int:
    """Mark all that a chain keeps as forgotten; return how many thoughts are still in it."""
    marks = store.ledger(chain)
    held = keeps = 0
    for one in filter(ledger.is_memory, store.all(chain)):
        held += 1
        keeps += marks.keeps(one)
    if keeps:
        store.mark(chain, thoughts.mark("Forgotten.", thoughts.FORGOTTEN))
    return held


def remains(url: str, left: Mapping[str, int]) -> tuple[str, ...]:
    """Say which chains still hold thoughts, and who can delete them."""
    return tuple(
        f"{url}: chain {chain} still holds {held} thoughts, which no recall shows; delete the "
        "chain in MentisDB's dashboard, its REST API cannot"
        for chain, held in left.items()
        if held
    )


def _stored(thought: Thought, chain: str) -> StoredMemory:
    _, agent, user, workspace, *_ = chain.split("__")
    return StoredMemory(
        thought.content,
        agent=agent,
        user=user,
        workspace=workspace.removeprefix("w-") if workspace != "w" else "",
        kind=thought.thought_type,
        session=thought.tag("session"),
        at=parse_milliseconds(thought.tag("at")),
        event=thought.tag("event"),
    )
