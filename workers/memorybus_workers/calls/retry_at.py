"""Says when something may be tried that may not be tried now."""

import msgspec


class RetryAt(msgspec.Struct, frozen=True):
    """The event stays open, and its key waits.

    Attributes:
        at: when to try it again (monotonic seconds).
    """

    at: float
