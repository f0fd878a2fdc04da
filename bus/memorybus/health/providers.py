"""A provider instance's lanes as the status tells of them, and how they are read from Redis."""

from typing import Any

import msgspec

from memorybus.log.stream import START
from memorybus.registry.done_set import above


class ProviderStatus(msgspec.Struct, frozen=True):
    """A provider's lanes, summed up. `applied` leaves out what is parked or was discarded.

    `failing` says how its calls fail while none succeeds: its lanes wait, and nothing is parked.
    `paused` says why its lanes stand still on somebody's word, `live` which copy of it serves
    agents if not itself: then all numbers are that one's. Of an instance that serves nobody
    `copy_of` says of what it is a copy; the one that served before is its own. `kept` says that it
    stands still for a rollback.
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
    paused: str = ""
    live: str = ""
    copy_of: str = ""
    kept: bool = False


FIELDS = ("entry", "n", "done", "parked", "discarded")
"""What is read of a lane's hash."""


class Lane(msgspec.Struct, frozen=True):
    """A lane as it stands in Redis, beside its partition's head."""

    entry: str
    n: int
    done_above: int
    not_applied: int
    owned: bool
    parked_keys: int
    dead: int
    head: int


def lane_of(head: int, checkpoint: Any, owned: Any, parked_keys: Any, dead: Any) -> Lane:
    """Return a lane, from the replies to what `Monitor.lanes` asks."""
    entry, n, done, parked, discarded = checkpoint if isinstance(checkpoint, list) else (None,) * 5
    return Lane(
        entry=entry.decode() if entry else START,
        n=number(n),
        done_above=above(done or b"", number(n)).bit_count(),
        not_applied=number(parked) + number(discarded),
        owned=bool(number(owned)),
        parked_keys=number(parked_keys),
        dead=number(dead),
        head=head,
    )


def waiting_since(lane: Lane, reply: Any, archived_since: int) -> int | None:
    """Return when a lane's oldest unapplied event entered the log (milliseconds), None if unknown.

    If that was trimmed, the event is in the archive: it came no earlier than the lane's last one.

    Args:
        lane: one that is behind.
        reply: of XRANGE from its checkpoint on.
        archived_since: when the first archived event of the partition came; 0 for none.
    """
    if not isinstance(reply, list) or not reply:
        return None
    entry, fields = reply[0]
    n = fields.get(b"n", b"")
    if archived_since and n.isdigit() and int(n) > lane.n + 1:
        return max(archived_since, int(lane.entry.partition("-")[0]))
    return int(entry.split(b"-")[0])


def number(reply: Any) -> int:
    """Read a number; a foreign key (an error in the reply) counts as nothing."""
    return 0 if reply is None or isinstance(reply, Exception) else int(reply)
