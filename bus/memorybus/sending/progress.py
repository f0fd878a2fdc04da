"""How far a spool is sent."""

from collections.abc import Mapping
from typing import Self

import msgspec


class Progress(msgspec.Struct, frozen=True):
    """How far a spool is sent: up to `cursor`, unless a partition lags behind it.

    Attributes:
        cursor: every row up to this sequence is in the log, but for lagging partitions.
        whole: every row up to this one is, of each partition.
        lagging: whether a partition lags.
    """

    cursor: int
    whole: int
    lagging: bool

    @classmethod
    def of(cls, cursor: int, lagging: Mapping[int, int]) -> Self:
        """Return the progress that a cursor and the places of lagging partitions make."""
        return cls(cursor, min([cursor, *lagging.values()]), bool(lagging))
