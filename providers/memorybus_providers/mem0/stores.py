"""What a provider asks of Mem0, be it the library or the server."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from memorybus_providers.mem0.memories import Filters, Messages, Owner, Row


class Store(Protocol):
    """Memories of all owners. May be used from several threads.

    Every method raises `Unavailable`, `Transient` or `Permanent`, and has a deadline in seconds.
    """

    def add(
        self,
        messages: Messages,
        owner: Owner,
        run: str,
        metadata: dict[str, str],
        *,
        infer: bool,
        deadline: float,
    ) -> None:
        """Store what was said in a run."""
        ...

    def of_run(self, owner: Owner, run: str, deadline: float) -> Sequence[Row]:
        """Return what came from a run."""
        ...

    def search(self, query: str, filters: Filters, most: int, deadline: float) -> Sequence[Row]:
        """Return memories with these ids and metadata, best first."""
        ...

    def containing(self, text: str, filters: Filters, deadline: float) -> Sequence[Row]:
        """Return memories with these ids and metadata in which a text stands."""
        ...

    def listed(self, filters: Filters, deadline: float) -> Iterator[Row]:
        """Yield all memories with these ids and metadata."""
        ...

    def delete(self, row: str, deadline: float) -> None:
        """Delete a memory; one that is not there is no error."""
        ...

    def delete_all(self, ids: Filters, deadline: float) -> None:
        """Delete all memories with these ids."""
        ...

    def residue(self) -> tuple[str, ...]:
        """Say what a deletion leaves."""
        ...

    def close(self) -> None:
        """Release connections."""
        ...
