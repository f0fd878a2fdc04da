"""The counters of a producer, so that every failure can be seen (G9)."""

import msgspec


class SendCounts(msgspec.Struct):
    """What is counted while a spool is sent.

    Attributes:
        sent: events that Redis took.
        rewinds: how often Redis had lost its newest events, and rows were sent again.
        conflicts: events that were sent again with another payload; the first one counts.
        lost: how often Redis had lost events that this spool no longer holds.
    """

    sent: int = 0
    rewinds: int = 0
    conflicts: int = 0
    lost: int = 0


class Counters(msgspec.Struct, frozen=True):
    """A process's counters since it connected; the first four are those of `SendCounts`.

    Attributes:
        prefetch_failures: reads of warm results that failed or came too late.
        asks_dropped: requests for recalls that were dropped because too many waited.
    """

    sent: int
    rewinds: int
    conflicts: int
    lost: int
    prefetch_failures: int
    asks_dropped: int
