"""The figures of providers and their lanes, as `status` shows them."""

from typing import Any

import msgspec

from memorybus.log.entry import entry_ms
from memorybus.registry.lanes import LANE_FIELDS, LaneState, read_lane
from memorybus.registry.work import WorkDone


class ProviderStatus(msgspec.Struct, frozen=True):
    """A provider's lanes, summed up; times are ISO 8601, UTC.

    Attributes:
        name: the provider, or the copy.
        applied: how many events were applied; parked and discarded events do not count.
        backlog: how many events wait.
        oldest_unapplied_at: when the oldest waiting event entered the log; null for none.
        parked_keys: how many order keys wait for an operator; of each, one event was refused.
        dead_letters: how many events these keys have: refused, and waiting behind what was refused.
        lanes: how many lanes it has.
        lanes_owned: how many of these a live worker owns.
        failing_since: since when these calls fail; null if they do not.
        failing: the error of its calls while none succeeds; its lanes then wait, and nothing is
            parked. "" otherwise.
        reports: what the provider reports about itself, such as how much is missing; "" for
            nothing.
        paused: why an operator or a command paused its lanes; "" if they are not paused.
        live: the copy that serves agents in its place, whose figures these are; "" for none.
        copy_of: for an instance that serves nobody, the provider that it copies; "" otherwise.
        kept: whether its lanes are paused because it is kept for `memorybus rebuild --rollback`.
        discarded: how many events an operator discarded.
        rate: how many events a second its workers applied over the last seconds; null if no worker
            reports it.
        seconds_left: how long its backlog takes at that rate; null if that is unknown.
        busiest: its lane with the largest backlog; "" if there is no backlog.
        busiest_backlog: how many events wait in that lane.
        work: what workers counted of their work for the provider; zeros for a copy.
        refused: how many events it refused for good.
        waiting_behind: how many events wait behind refused ones of their keys.
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
    failing_since: str | None = None
    refused: int = 0
    waiting_behind: int = 0


class LaneFigures(LaneState, frozen=True, kw_only=True):
    """A lane with what else `status` counts: its parked keys, and the head of its partition.

    Attributes:
        parked_keys: how many order keys wait for an operator.
        dead: how many events these keys have.
        head: the last number of the partition.
    """

    parked_keys: int
    dead: int
    head: int

    @property
    def backlog(self) -> int:
        """How many events wait."""
        return max(0, self.head - self.n - self.done_above)

    @property
    def refused(self) -> int:
        """How many events were refused for good: the first of each parked key."""
        return min(self.parked_keys, self.dead)

    @property
    def waiting_behind(self) -> int:
        """How many events wait behind refused ones of their keys."""
        return self.dead - self.refused


def lane_figures(head: int, fields: Any, owned: Any, parked_keys: Any, dead: Any) -> LaneFigures:
    """Return a lane from the replies that `Monitor.read_lanes` gets."""
    known = fields if isinstance(fields, list) else [None] * len(LANE_FIELDS)
    return LaneFigures(
        **msgspec.structs.asdict(read_lane(known, reply_number(owned))),
        parked_keys=reply_number(parked_keys),
        dead=reply_number(dead),
        head=head,
    )


def waiting_since(lane: LaneFigures, reply: Any, archived_since: int) -> int | None:
    """Return when a lane's oldest unapplied event entered the log (milliseconds), None if unknown.

    If that event was trimmed, it is in the archive. Then the result is the later of two lower
    bounds: the time of the lane's last event, and that of the first archived one.

    Args:
        lane: a lane that is behind.
        reply: Redis's reply to XRANGE from the lane's checkpoint on.
        archived_since: when the first archived event of the partition entered the log,
            milliseconds; 0 for none.
    """
    if not isinstance(reply, list) or not reply:
        return None
    entry, fields = reply[0]
    n = fields.get(b"n", b"")
    if archived_since and n.isdigit() and int(n) > lane.n + 1:
        return max(archived_since, entry_ms(lane.entry))
    return int(entry.split(b"-")[0])


def reply_number(reply: Any) -> int:
    """Return a reply as a number; 0 for none, and for the error that a foreign key causes."""
    return 0 if reply is None or isinstance(reply, Exception) else int(reply)
