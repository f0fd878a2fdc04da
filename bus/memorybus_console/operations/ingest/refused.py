"""What an ingest does not publish, and the error of an input that cannot be read."""

from typing import Self

import msgspec
from memorybus.errors import MemoryBusError


class UnreadableInput(MemoryBusError):
    """An input, or a part of it, is not as its format says.

    Attributes:
        why: the reason.
        place: where it is, such as ``file:line``; "" if whoever reads the input knows that.
    """

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(f"{place}: {why}" if place else why)
        self.why = why
        self.place = place


class RefusedInput(msgspec.Struct, frozen=True):
    """Something that was not published, and why.

    Attributes:
        what: the file, address, record, session or turn.
        why: the reason; it begins with the place, if there is one.
        place: where in it the reason lies, such as ``file:line``; "" if the reason concerns all of
            it.
    """

    what: str
    why: str
    place: str = ""

    @classmethod
    def unreadable(cls, what: str, error: UnreadableInput) -> Self:
        """Return the refusal of an input that cannot be read."""
        return cls(what, str(error), error.place)

    def describe(self) -> str:
        """Return what was refused and why, as people read it."""
        return self.why if self.place else f"{self.what}: {self.why}"
