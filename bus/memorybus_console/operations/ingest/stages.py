"""The interface by which an ingest reports its stages; a surface shows them."""

from contextlib import AbstractContextManager
from typing import Protocol


class StageStep(Protocol):
    """Is called while a stage makes progress."""

    def __call__(self, count: int = 1, /) -> None:
        """Note that `count` more are done."""


class OnStage(Protocol):
    """Is called when a stage begins; the stage lasts as long as the block that it returns."""

    def __call__(
        self, what: str, unit: str, total: int | None
    ) -> AbstractContextManager[StageStep]:
        """Begin a stage.

        Args:
            what: what is done.
            unit: what is counted.
            total: how many there are; None if that is unknown.
        """
        ...
