"""Who is there: provider instances that workers registered, and workers by their heartbeats."""

from typing import TypeVar, cast

import msgspec
from redis import Redis

from memorybus.errors import LogError
from memorybus.keys import Keys

_T = TypeVar("_T")

ALIVE = 15.0
"""Seconds after its last heartbeat in which a worker counts as alive."""

BEAT = 3.0
"""Seconds between heartbeats."""

_FORGOTTEN = 60.0


class ProviderInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker registers of a provider instance."""

    kind: str
    delivery: str
    placement: str
    order: int = 0
    recall: bool = True


class WorkerInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker's heartbeat.

    Attributes:
        id: the worker.
        host: its machine.
        pid: its process.
        lanes: how many lanes it owns.
        jobs: how many recall processes it runs.
        providers: the instances it serves.
        heartbeat_at: wall time of the Redis server, milliseconds.
    """

    id: str
    host: str
    pid: int
    lanes: int
    jobs: int
    providers: tuple[str, ...]
    heartbeat_at: int


class Roster:
    """The two hashes. Belongs to one thread; raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys

    def register(self, name: str, info: ProviderInfo) -> None:
        """Make a provider instance known."""
        self._redis.hset(self._keys.providers, name, msgspec.json.encode(info))

    def unregister(self, name: str) -> None:
        """Forget a provider instance (a finished replay target)."""
        self._redis.hdel(self._keys.providers, name)

    def providers(self) -> dict[str, ProviderInfo]:
        """Return the registered instances, in the order of recall.

        Raises:
            LogError: an entry is not ours.
        """
        found = self._entries(self._keys.providers, ProviderInfo)
        return dict(sorted(found.items(), key=lambda pair: (pair[1].order, pair[0])))

    def beat(self, info: WorkerInfo) -> None:
        """Show that a worker lives; forget those that have been silent for a minute."""
        now = self.now_ms()
        info = msgspec.structs.replace(info, heartbeat_at=now)
        self._redis.hset(self._keys.workers, info.id, msgspec.json.encode(info))
        for worker in self._entries(self._keys.workers, WorkerInfo).values():
            if now - worker.heartbeat_at > _FORGOTTEN * 1000:
                self._redis.hdel(self._keys.workers, worker.id)

    def leave(self, worker: str) -> None:
        """Forget a worker that ends."""
        self._redis.hdel(self._keys.workers, worker)

    def alive(self) -> list[WorkerInfo]:
        """Return the workers whose heartbeat is fresh.

        Raises:
            LogError: an entry is not ours.
        """
        oldest = self.now_ms() - ALIVE * 1000
        workers = self._entries(self._keys.workers, WorkerInfo).values()
        return sorted((w for w in workers if w.heartbeat_at >= oldest), key=lambda w: w.id)

    def now_ms(self) -> int:
        """Return the server's wall time: the one clock that all workers share."""
        seconds, micros = self._redis.time()
        return seconds * 1000 + micros // 1000

    def _entries(self, key: str, kind: type[_T]) -> dict[str, _T]:
        fields = cast("dict[bytes, bytes]", self._redis.hgetall(key))
        try:
            return {n.decode(): msgspec.json.decode(body, type=kind) for n, body in fields.items()}
        except msgspec.MsgspecError as error:
            raise LogError(f"{key}: an entry that memorybus did not write: {error}") from error
