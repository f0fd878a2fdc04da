"""Who is there: provider instances that workers registered, and workers by their heartbeats."""

from collections.abc import Callable, Mapping
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
_UNSERVED = 86_400.0


class ProviderInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker registers of a provider instance.

    Attributes:
        kind: the provider behind it.
        delivery: its class (G4).
        placement: "local" or "shared".
        order: its place in a memory block.
        recall: whether it answers recalls.
        seen_at: when a worker last served it (server's wall time, milliseconds).
    """

    kind: str
    delivery: str
    placement: str
    order: int = 0
    recall: bool = True
    seen_at: int = 0


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

    def register(self, providers: Mapping[str, ProviderInfo]) -> None:
        """Make instances known, and forget those that no worker has served for a day."""
        now = self.now_ms()
        bodies = {
            name: msgspec.json.encode(msgspec.structs.replace(info, seen_at=now))
            for name, info in providers.items()
        }
        self._asked(self._keys.providers, lambda key: self._redis.hset(key, mapping=dict(bodies)))
        for name, info in self.providers().items():
            if now - info.seen_at > _UNSERVED * 1000:
                self._asked(self._keys.providers, lambda key, n=name: self._redis.hdel(key, n))

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

    def recalling(self) -> list[str]:
        """Return the providers whose recalls a live worker answers, in the order of a block."""
        served = {name for w in self.alive() if w.jobs for name in w.providers}
        return [name for name, info in self.providers().items() if info.recall and name in served]

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
