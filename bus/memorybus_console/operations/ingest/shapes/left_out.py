"""Notes what an ingest does not take from a source: unreadable lines, and what is dropped."""

import msgspec

from memorybus_console.operations.ingest.refused import RefusedInput

MAX_NAMED = 100
"""How many unreadable lines of a source are named; further ones are only counted (G10)."""


class LeftOut(msgspec.Struct):
    """What a reader left out.

    Attributes:
        unread: how many lines and records cannot be read.
        named: the first of them, each with its place and the reason.
        dropped: how often something is dropped, by its kind: reasoning, pictures, relations and
            times that are none.
    """

    unread: int = 0
    named: list[RefusedInput] = []
    dropped: dict[str, int] = {}

    def refuse(self, refusal: RefusedInput) -> None:
        """Note a line or a record that cannot be read."""
        self.unread += 1
        if len(self.named) < MAX_NAMED:
            self.named.append(refusal)

    def drop(self, kind: str, count: int = 1) -> None:
        """Note that `count` more of a kind are dropped."""
        if count:
            self.dropped[kind] = self.dropped.get(kind, 0) + count
