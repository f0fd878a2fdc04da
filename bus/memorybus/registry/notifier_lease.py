"""The lease of the task of notifying people of findings: one process of the bus has it.

The lease expires, so that another host takes the task over when its holder dies. The holder's note
for its successor stays.
"""

from typing import Final

from redis import Redis

from memorybus.redis import scripts
from memorybus.redis.keys import Keys

LEASE_SECONDS: Final = 20.0
"""The lease expires unless its holder renews it in time."""


class NotifierLease:
    """Takes and renews the lease. Belongs to one thread; raises what redis-py raises.

    Args:
        redis: the log's Redis.
        keys: the namespace's.
        owner: the id of the process that wants it; no other process has the same.
    """

    def __init__(self, redis: Redis, keys: Keys, owner: str) -> None:
        """Take nothing yet."""
        self._redis = redis
        self._keys = keys
        self._owner = owner

    def read(self) -> bytes | None:
        """Take or renew the lease; return its note, or None if another process has the lease."""
        return self._run(LEASE_SECONDS)

    def write(self, note: bytes) -> bool:
        """Leave a note; return False, and leave none, if another process has the lease now."""
        return self._run(LEASE_SECONDS, note) is not None

    def close(self) -> None:
        """Give it up, so that another need not wait until it expires."""
        self._run(0.0)

    def _run(self, life: float, note: bytes = b"") -> bytes | None:
        call = scripts.hold_notifier_lease(self._keys, self._owner, round(life * 1000), note)
        return scripts.run(self._redis, call)
