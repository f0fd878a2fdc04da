"""The limits of an instance's calls, which its table may set."""

from typing import Annotated

import msgspec


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many write calls all workers may make to one provider instance; 0 means no limit.

    Attributes:
        calls_per_second: the average rate; the calls of a second may come at once.
        daily_budget: the calls of one day, UTC.
    """

    calls_per_second: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    daily_budget: Annotated[int, msgspec.Meta(ge=0)] = 0


LIMITS = CallLimits.__struct_fields__
"""The keys of an instance's table that only workers read; providers do not get them."""
