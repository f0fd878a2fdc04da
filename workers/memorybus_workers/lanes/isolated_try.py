"""Decides whether a suspected event is tried alone again, or has killed too many workers (G6)."""

from typing import Final

import msgspec

MAX_KILLS: Final = 2
"""How many workers an event may kill while it is tried alone; then it is parked."""


class TryBegun(msgspec.Struct, frozen=True):
    """The event may be tried, and the try is recorded."""


class TooManyKills(msgspec.Struct, frozen=True):
    """The event is not tried again, because it killed `kills` workers."""

    kills: int


def judge_isolated_try(open_tries: int) -> TryBegun | TooManyKills:
    """Decide about a try; `open_tries` counts it, and earlier tries that never ended."""
    kills = open_tries - 1
    return TooManyKills(kills) if kills >= MAX_KILLS else TryBegun()
