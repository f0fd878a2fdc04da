"""A span as the bus sees it, whether something records it or not."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self


class Span:
    """A span around a block of code. This base class records nothing.

    Attributes:
        trace: its W3C traceparent, for work that goes on elsewhere; "" if nothing is recorded.
    """

    __slots__ = ()

    @property
    def trace(self) -> str:
        """The W3C traceparent; "" because nothing is recorded."""
        return ""

    def set_counts(self, **counts: int) -> None:
        """Record numbers that the block found."""

    def __enter__(self) -> Self:
        """Begin it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it; only the class of an error is recorded, since its text may quote a person."""


NO_SPAN: Final = Span()
