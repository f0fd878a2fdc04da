"""Parked keys: what a provider refuses for good waits, with the later events of its key (G6)."""

from collections.abc import Sequence

import msgspec
from memorybus import scripts
from memorybus.errors import LeaseLost
from memorybus.keys import Keys
from memorybus.logged import LoggedEvent
from redis import Redis

BEHIND = "waits behind the key's dead letter"


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record in the dead-letter stream (JSON); the event itself stays in the log.

    Attributes:
        event_id: the envelope's id.
        entry: where in the partition's log it stands.
        n: its dense number.
        key: its order key.
        type: the event's type.
        reason: why it was parked.
        attempts: how often it was tried; 0 for one that only waits behind its key's first.
    """

    event_id: str
    entry: str
    n: int
    key: str
    type: str
    reason: str
    attempts: int = 0


class Parked:
    """The parked keys of one lane, as its owner knows them. Belongs to one thread."""

    def __init__(self, redis: Redis, keys: Keys, partition: int, provider: str, epoch: int) -> None:
        """Read which keys wait.

        Raises:
            redis.RedisError: Redis is away.
        """
        self._redis = redis
        self._place = (keys, partition, provider, epoch)
        found = redis.hkeys(keys.parked(partition, provider))
        self.keys = {bytes(key).decode("utf-8", "surrogatepass") for key in found}  # type: ignore[arg-type]

    def put_aside(self, events: Sequence[LoggedEvent], reason: str, attempts: int = 0) -> None:
        """Put events aside, before the lane's checkpoint passes them; again is once.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        if not events:
            return
        records = [
            (event.position.entry, event.envelope.key, _record(event, reason, attempts))
            for event in events
        ]
        keys, partition, provider, epoch = self._place
        if scripts.run(self._redis, scripts.park(keys, partition, provider, epoch, records)) < 0:
            raise LeaseLost(f"{provider}, partition {partition}")
        self.keys.update(event.envelope.key for event in events)


def _record(event: LoggedEvent, reason: str, attempts: int) -> bytes:
    envelope, position = event.envelope, event.position
    return msgspec.json.encode(
        DeadLetter(
            event_id=envelope.id,
            entry=position.entry,
            n=position.n,
            key=envelope.key,
            type=type(envelope.event).__name__,
            reason=reason,
            attempts=attempts,
        )
    )
