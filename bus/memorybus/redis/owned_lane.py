"""The lane that a script changes, as its owner names it."""

import msgspec

from memorybus.redis.keys import Keys


class OwnedLane(msgspec.Struct, frozen=True):
    """A lane and its owner's epoch: scripts refuse what comes under any epoch but the newest (G5).

    Attributes:
        keys: the keys of the log.
        partition: the lane's partition.
        provider: the lane's provider.
        epoch: the owner's fencing token.
    """

    keys: Keys
    partition: int
    provider: str
    epoch: int

    @property
    def key(self) -> str:
        """The key of the lane's hash."""
        return self.keys.lane(self.partition, self.provider)

    @property
    def parked(self) -> str:
        """The key of its parked keys."""
        return self.keys.parked(self.partition, self.provider)

    @property
    def dead(self) -> str:
        """The key of its dead letters."""
        return self.keys.dead(self.partition, self.provider)

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.provider}, partition {self.partition}: epoch {self.epoch}"
