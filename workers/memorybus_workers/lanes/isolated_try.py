"""Whether a suspected event is tried once more, alone, or has ended too many workers (G6)."""

from typing import Final

import msgspec

MAX_KILLS: Final = 2
"""Workers that an event may end while it is tried alone; the next time it is parked."""


class TryBegun(msgspec.Struct, frozen=True):
    """The event may be tried, and everybody knows that it is."""


class TooManyKills(msgspec.Struct, frozen=True):
    """The event is not tried again: it ended `kills` workers."""

    kills: int


def judge_isolated_try(open_tries: int) -> TryBegun | TooManyKills:
    """Decide about a try; `open_tries` counts it, and those before that nobody saw the end of."""
    kills = open_tries - 1
    return TooManyKills(kills) if kills >= MAX_KILLS else TryBegun()
