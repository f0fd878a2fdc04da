"""The limits of an instance's calls, as options for which `provider setup` asks."""

import msgspec
from memorybus.config.call_limits import CallLimits
from memorybus.processes.reports import KindOffer, OptionField

FIELDS = (
    OptionField(
        "calls_per_second",
        "calls of its write hooks a second, over all workers",
        default=CallLimits().calls_per_second,
        hint="0 for no bound",
    ),
    OptionField(
        "daily_budget",
        "calls of its write hooks a day (UTC), over all workers",
        default=CallLimits().daily_budget,
        hint="0 for no bound",
    ),
)
"""The options of an instance's table that workers read, and providers do not (`LIMITS`)."""


def with_limits(offer: KindOffer) -> KindOffer:
    """Return an offer with the limits added to its options, if its calls can be limited.

    Calls of a transactional provider cannot be limited: each is a transaction of a whole batch.
    """
    if offer.options is None or offer.missing or offer.delivery == "transactional":
        return offer
    return msgspec.structs.replace(offer, options=(*offer.options, *FIELDS))
