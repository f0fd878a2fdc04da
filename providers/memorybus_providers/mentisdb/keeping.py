"""Exports a chain, and marks its thoughts as forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from memorybus_providers.base import StoredMemory
from memorybus_providers.mentisdb import ledger, thoughts
from memorybus_providers.mentisdb.thoughts import Thought
from memorybus_providers.remote.texts import parse_milliseconds

if TYPE_CHECKING:
    from memorybus_providers.mentisdb.store import MentisStore


def export_chain(store: MentisStore, chain: str) -> Iterator[StoredMemory]:
    """Yield the memories of a chain, the oldest first, including retracted ones."""
    kept = filter(store.ledger(chain).is_kept, store.all_thoughts(chain))
    yield from (_stored(one, chain) for one in kept)


def forget_chain(store: MentisStore, chain: str) -> int:
    """Mark all memories of a chain as forgotten; return how many it still contains."""
    marks = store.ledger(chain)
    count = kept = 0
    for one in filter(ledger.is_memory, store.all_thoughts(chain)):
        count += 1
        kept += marks.is_kept(one)
    if kept:
        store.append_mark(chain, thoughts.make_mark("Forgotten.", thoughts.FORGOTTEN))
    return count


def residue_notes(url: str, left: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence for each chain that still contains memories: it says how to delete it."""
    return tuple(
        f"{url}: chain {chain} still holds {count} thoughts, which no recall shows; delete the "
        "chain in MentisDB's dashboard, its REST API cannot"
        for chain, count in left.items()
        if count
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
