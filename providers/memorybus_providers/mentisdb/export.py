"""Exports a chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memorybus_providers.base import StoredMemory
from memorybus_providers.mentisdb import ledger
from memorybus_providers.mentisdb.thoughts import Thought
from memorybus_providers.remote.texts import parse_milliseconds

if TYPE_CHECKING:
    from memorybus_providers.mentisdb.store import MentisStore


def export_chain(store: MentisStore, chain: str) -> Iterator[StoredMemory]:
    """Yield the memories of a chain, the oldest first, including retracted ones."""
    memories = filter(ledger.is_memory, store.all_thoughts(chain))
    yield from (_stored(memory, chain) for memory in memories)


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
