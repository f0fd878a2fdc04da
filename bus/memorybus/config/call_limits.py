"""The limits of an instance's calls, which its table may set."""

from typing import Annotated

import msgspec


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many write calls all workers may make to one provider instance.

    Attributes:
        calls_per_second: how many calls of its write hooks all workers may make a second, on
            average; the calls of a second may come at once; 0 for no limit.
        daily_budget: how many calls of its write hooks all workers may make a day (UTC); 0 for no
            limit.
    """

    calls_per_second: Annotated[float, msgspec.Meta(ge=0), "calls/s"] = 0.0
    daily_budget: Annotated[int, msgspec.Meta(ge=0), "calls/day"] = 0


LIMITS = CallLimits.__struct_fields__
"""The keys of an instance's table that only workers read; providers do not get them."""
