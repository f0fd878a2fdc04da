"""Who is there: provider instances that workers registered, and workers by their heartbeats."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.errors import ForeignKey
from memorybus.keys import Keys
from memorybus.links import translated

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
    """The two hashes. Belongs to one thread.

    Every method raises `LogUnavailable` without Redis, and `ForeignKey` if a hash is not ours.
    """

    def __init__(self, redis: Redis, keys: Keys) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys

    def register(self, name: str, info: ProviderInfo) -> None:
        """Make a provider instance known."""
        self._asked(
            self._keys.providers,
            lambda key: self._redis.hset(key, name, msgspec.json.encode(info)),
        )

    def unregister(self, name: str) -> None:
        """Forget a provider instance (a finished replay target)."""
        self._asked(self._keys.providers, lambda key: self._redis.hdel(key, name))

    def providers(self) -> dict[str, ProviderInfo]:
        """Return the registered instances, in the order of recall.

        Raises:
            ForeignKey: an entry is not ours.
        """
        found = self._entries(self._keys.providers, ProviderInfo)
        return dict(sorted(found.items(), key=lambda pair: (pair[1].order, pair[0])))

    def beat(self, info: WorkerInfo) -> None:
        """Show that a worker lives; forget those that have been silent for a minute."""
        now = self.now_ms()
        info = msgspec.structs.replace(info, heartbeat_at=now)
        body = msgspec.json.encode(info)
        self._asked(self._keys.workers, lambda key: self._redis.hset(key, info.id, body))
        for worker in self._entries(self._keys.workers, WorkerInfo).values():
            if now - worker.heartbeat_at > _FORGOTTEN * 1000:
                self._redis.hdel(self._keys.workers, worker.id)

    def leave(self, worker: str) -> None:
        """Forget a worker that ends."""
        self._asked(self._keys.workers, lambda key: self._redis.hdel(key, worker))

    def alive(self) -> list[WorkerInfo]:
        """Return the workers whose heartbeat is fresh.

        Raises:
            ForeignKey: an entry is not ours.
        """
        oldest = self.now_ms() - ALIVE * 1000
        workers = self._entries(self._keys.workers, WorkerInfo).values()
        return sorted((w for w in workers if w.heartbeat_at >= oldest), key=lambda w: w.id)

    def now_ms(self) -> int:
        """Return the server's wall time: the one clock that all workers share."""
        seconds, micros = self._asked(self._keys.workers, lambda _: self._redis.time())
        return int(seconds) * 1000 + int(micros) // 1000

    def _entries(self, key: str, kind: type[_T]) -> dict[str, _T]:
        fields: dict[bytes, bytes] = self._asked(key, self._redis.hgetall)
        try:
            return {n.decode(): msgspec.json.decode(body, type=kind) for n, body in fields.items()}
        except msgspec.MsgspecError as error:
            raise ForeignKey(
                f"{key}: an entry that memorybus did not write ({error}); remove it, or set "
                f"another `namespace`"
            ) from error

    def _asked(self, key: str, ask: Callable[[str], Any]) -> Any:
        try:
            return ask(key)
        except (RedisError, OSError) as error:
            raise translated(error, key) from error
