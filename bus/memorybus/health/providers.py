"""The figures of providers and their lanes, as `status` shows them."""

from typing import Any

import msgspec

from memorybus.log.stream import START
from memorybus.registry.done_set import decode_done_above
from memorybus.registry.lanes import HALTED
from memorybus.registry.work import WorkDone


class ProviderStatus(msgspec.Struct, frozen=True):
    """A provider's lanes, summed up; times are ISO 8601, UTC.

    Attributes:
        name: the provider, or the copy.
        applied: events applied, without those that are parked or were discarded.
        backlog: events that wait.
        oldest_unapplied_at: when the oldest of these entered the log; null for none.
        parked_keys: keys that wait for an operator.
        dead_letters: events of these keys.
        lanes: how many it has.
        lanes_owned: how many a live worker owns.
        failing: how its calls fail while none succeeds: lanes wait, nothing is parked. "" if not.
        reports: what it says of itself: how much of something is missing, say. "" if nothing.
        paused: why its lanes stand still on somebody's word; "" if they do not.
        live: the copy that serves agents in its place, whose numbers these are; "" if none does.
        copy_of: for an instance that serves nobody, the provider that it copies; else "".
        kept: whether it stands still because it is kept for `memorybus rebuild --rollback`.
        discarded: events that an operator discarded.
        rate: events a second that its workers apply, over the last seconds; null if none tells.
        seconds_left: how long its backlog takes at that rate; null if that cannot be said.
        busiest: its lane with the largest backlog; "" if it has none.
        busiest_backlog: events that wait in that lane.
        limits: limits of its calls that somebody set while workers run, by name: they hold instead
            of the settings'.
        work: what workers counted of their work for the provider; a copy has none.
    """

    name: str
    applied: int
    backlog: int
    oldest_unapplied_at: str | None
    parked_keys: int
    dead_letters: int
    lanes: int
    lanes_owned: int
    failing: str = ""
    reports: str = ""
    paused: str = ""
    live: str = ""
    copy_of: str = ""
    kept: bool = False
    discarded: int = 0
    rate: float | None = None
    seconds_left: float | None = None
    busiest: str = ""
    busiest_backlog: int = 0
    work: WorkDone = WorkDone()
    limits: dict[str, float] = {}


FIELDS = ("entry", "n", "done", "parked", "discarded", HALTED)
"""The fields that `lane_figures` reads of a lane's hash."""


class LaneFigures(msgspec.Struct, frozen=True):
    """A lane as it stands in Redis, beside its partition's head.

    Attributes:
        entry: its checkpoint.
        n: the number of that entry.
        done_above: events done out of order behind it.
        not_applied: events that were parked or discarded.
        discarded: those of them that were discarded.
        owned: whether a live worker owns it.
        parked_keys: keys that wait for an operator.
        dead: events of these keys.
        head: the last number of the partition.
        halted: why it has stopped; "" if it has not. Hostile text.
    """

    entry: str
    n: int
    done_above: int
    not_applied: int
    owned: bool
    parked_keys: int
    dead: int
    head: int
    halted: str = ""
    discarded: int = 0

    @property
    def backlog(self) -> int:
        """Events that wait for it."""
        return max(0, self.head - self.n - self.done_above)


def lane_figures(
    head: int, checkpoint: Any, owned: Any, parked_keys: Any, dead: Any
) -> LaneFigures:
    """Return a lane from the replies that `Monitor.read_lanes` gets."""
    known = checkpoint if isinstance(checkpoint, list) else [None] * len(FIELDS)
    entry, n, done, parked, discarded, halted = known
    return LaneFigures(
        entry=entry.decode() if entry else START,
        n=reply_number(n),
        done_above=decode_done_above(done or b"", reply_number(n)).bit_count(),
        not_applied=reply_number(parked) + reply_number(discarded),
        owned=bool(reply_number(owned)),
        parked_keys=reply_number(parked_keys),
        dead=reply_number(dead),
        head=head,
        halted=halted.decode("utf-8", "replace") if halted else "",
        discarded=reply_number(discarded),
    )


def waiting_since(lane: LaneFigures, reply: Any, archived_since: int) -> int | None:
    """Return when a lane's oldest unapplied event entered the log (milliseconds), None if unknown.

    A trimmed event is in the archive. It came no earlier than the lane's last one.

    Args:
        lane: one that is behind.
        reply: the answer to XRANGE from its checkpoint on.
        archived_since: when the first archived event of the partition came; 0 for none.
    """
    if not isinstance(reply, list) or not reply:
        return None
    entry, fields = reply[0]
    n = fields.get(b"n", b"")
    if archived_since and n.isdigit() and int(n) > lane.n + 1:
        return max(archived_since, int(lane.entry.partition("-")[0]))
    return int(entry.split(b"-")[0])


def reply_number(reply: Any) -> int:
    """Return a reply as a number: 0 for none, and for the error that a foreign key gives."""
    return 0 if reply is None or isinstance(reply, Exception) else int(reply)
