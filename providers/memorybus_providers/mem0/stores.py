"""The interface for requests to Mem0, which the library and the server implement."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from memorybus_providers.mem0.memories import Filters, Mem0Memory, Messages, OwnerIds


class Mem0Store(Protocol):
    """The memories of all owners. May be used from several threads.

    Every method that makes a request has a deadline in seconds, and raises `Unavailable`,
    `Transient` or `Permanent`.
    """

    def add(
        self,
        messages: Messages,
        owner: OwnerIds,
        run: str,
        metadata: dict[str, str],
        *,
        infer: bool,
        deadline: float,
    ) -> None:
        """Store what was said in a run."""
        ...

    def rows_of_run(self, owner: OwnerIds, run: str, deadline: float) -> Sequence[Mem0Memory]:
        """Return the memories of a run."""
        ...

    def search(
        self, query: str, filters: Filters, most: int, deadline: float
    ) -> Sequence[Mem0Memory]:
        """Return memories with these ids and metadata, best first."""
        ...

    def rows_containing(self, text: str, filters: Filters, deadline: float) -> Sequence[Mem0Memory]:
        """Return memories with these ids and metadata that contain a text."""
        ...

    def list_rows(self, filters: Filters, deadline: float) -> Iterator[Mem0Memory]:
        """Yield all memories with these ids and metadata."""
        ...

    def delete(self, row: str, deadline: float) -> None:
        """Delete a memory; it is not an error if it does not exist."""
        ...

    def delete_all(self, ids: Filters, deadline: float) -> None:
        """Delete all memories with these ids."""
        ...

    def residue(self) -> tuple[str, ...]:
        """Return sentences about what remains after a deletion, with what to do."""
        ...

    def close(self) -> None:
        """Release connections."""
        ...
