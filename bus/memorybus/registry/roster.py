"""The roster: provider instances that workers registered, and workers by their heartbeats."""

import socket
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec
from redis import Redis

from memorybus.receipt import SpoolStats
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis, redis_errors
from memorybus.redis.facts import to_milliseconds
from memorybus.redis.hashes import decode_readable
from memorybus.redis.keys import Keys
from memorybus.registry.tools import DeclaredTools

_T = TypeVar("_T")
ALIVE_SECONDS = 15.0  # seconds after its last heartbeat in which a worker counts as alive
GONE_SECONDS = 900.0
"""Seconds for which a worker that fell silent without leaving is remembered, for people."""

_NO_TOOLS: Mapping[str, DeclaredTools] = MappingProxyType({})
_UNSERVED_SECONDS = 86_400.0


def worker_id(pid: int, mark: str) -> str:
    """Return the id of a worker on this host; the process that starts it knows the id at once."""
    return f"{socket.gethostname()}-{pid}-{mark}"


class ProviderInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker registers about a provider instance."""

    kind: str  # the kind of provider behind it
    delivery: str  # its class (G4)
    placement: str  # "local" or "shared"
    order: int = 0  # its place in a memory block
    recall: bool = True  # whether it answers recalls
    as_of: bool = False  # whether it can say what was known at a time
    compresses: bool = False  # whether it contributes to the summary of a compression
    prompts: bool = False  # whether it adds to system prompts
    examines: bool = False  # whether it can check its backend
    digests: bool = False  # whether two states of it can be compared
    exports: bool = False  # whether it can list what it keeps about a person
    retracts: bool = False  # whether it forgets memories whose event is taken back
    curates: bool = False  # whether its memories have states, so that they age
    seen_at: int = 0  # when a worker last served it (server's wall time, milliseconds)
    note: str = ""  # what else people should know
    # The instance of the settings that it copies; "" if it is not a copy. Agents never see a copy's
    # name.
    copy_of: str = ""


class WorkerInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker's heartbeat."""

    id: str  # the worker
    host: str  # its machine
    pid: int  # its process
    lanes: int  # how many lanes it owns
    jobs: int  # how many recall processes it runs
    providers: tuple[str, ...]  # the instances it serves
    heartbeat_at: int  # wall time of the Redis server, milliseconds
    capacity: float = 1.0  # its weight when lanes are shared out
    ready: tuple[str, ...] = ()  # the instances that are open in it and can work now
    failing: dict[str, str] = {}  # the error of an instance's calls, as long as none succeeds
    reports: dict[str, str] = {}  # what an open instance reports about itself, if anything
    beat: float = 1.0  # seconds between its heartbeats
    version: str = ""  # its release; "" for an older release that does not report it
    # events a second that it applied over the last seconds, by provider; None for an older release
    # that does not report it
    rates: dict[str, float] | None = None
    # the events in its host's spools that Redis has not taken; None if it did not look
    spool: SpoolStats | None = None
    # when its first heartbeat was written (the server's wall time, milliseconds); 0 in that first
    # one
    started_at: int = 0
    # for how many seconds the calls of each failing instance have failed
    failing_for: dict[str, float] = {}


class Roster:
    """Reads and writes the hashes of providers, tools and workers. Belongs to one thread."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    def register(
        self,
        providers: Mapping[str, ProviderInfo],
        declared: Mapping[str, DeclaredTools] = _NO_TOOLS,
    ) -> None:
        """Register instances and their tools; forget those that no worker served for a day."""
        now = self.now_ms()
        bodies = {
            name: msgspec.json.encode(msgspec.structs.replace(info, seen_at=now))
            for name, info in providers.items()
        }
        self._put(self._keys.providers, bodies)
        self._declare({name: declared.get(name, DeclaredTools()) for name in providers})
        registered = self.instances().items()
        unserved = [
            name for name, info in registered if now - info.seen_at > _UNSERVED_SECONDS * 1000
        ]
        self._drop(self._keys.providers, unserved)
        self._drop(self._keys.tools, unserved)

    def forget(self, name: str) -> None:
        """Forget an instance and its tools; a worker that still serves it registers it again."""
        self._drop(self._keys.providers, [name])
        self._drop(self._keys.tools, [name])

    def instances(self) -> dict[str, ProviderInfo]:
        providers = self._entries(self._keys.providers, ProviderInfo)
        return dict(sorted(providers.items(), key=lambda pair: (pair[1].order, pair[0])))

    def providers(self) -> dict[str, ProviderInfo]:
        return {name: info for name, info in self.instances().items() if not info.copy_of}

    def _declare(self, declared: Mapping[str, DeclaredTools]) -> None:
        """Write only what has changed: schemas are long and rarely change."""
        bodies = {name: msgspec.json.encode(tools) for name, tools in declared.items()}
        held = ask_redis(lambda: self._redis.hgetall(self._keys.tools), self._keys.tools)
        changed = {name: body for name, body in bodies.items() if held.get(name.encode()) != body}
        if changed:
            self._put(self._keys.tools, changed)

    def tools(self) -> dict[str, DeclaredTools]:
        declared = self._entries(self._keys.tools, DeclaredTools)
        return {name: declared[name] for name in self.providers() if name in declared}

    def beat(self, info: WorkerInfo) -> list[WorkerInfo]:
        """Write a worker's heartbeat; return all workers that have not left."""
        key = self._keys.workers
        # in one round trip, because each wakes a worker
        with redis_errors(key), self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hgetall(key)
            now, others = pipe.execute()
        info = msgspec.structs.replace(info, heartbeat_at=to_milliseconds(now))
        self._put(key, {info.id: msgspec.json.encode(info)})
        workers = decode_readable(others, WorkerInfo)
        return list((workers | {info.id: info}).values())

    def leave(self, *workers: str) -> None:
        """Remove workers that end, or have ended."""
        self._drop(self._keys.workers, list(workers))

    def recalling_providers(self) -> list[str]:
        served = self.job_providers()
        return [n for n, info in self.providers().items() if info.recall and n in served]

    def contributing_providers(self) -> list[str]:
        served = self.served_providers()
        return [n for n, info in self.providers().items() if info.compresses and n in served]

    def served_providers(self) -> set[str]:
        return {name for worker in self.alive() for name in worker.providers}

    def job_providers(self) -> set[str]:
        return {name for worker in self.alive() if worker.jobs for name in worker.providers}

    def alive(self) -> list[WorkerInfo]:
        return self.seen()[0]

    def seen(self) -> tuple[list[WorkerInfo], list[WorkerInfo]]:
        oldest = self.now_ms() - ALIVE_SECONDS * 1000
        workers = sorted(
            self._entries(self._keys.workers, WorkerInfo).values(), key=lambda worker: worker.id
        )
        alive = [worker for worker in workers if worker.heartbeat_at >= oldest]
        return alive, unreplaced([worker for worker in workers if worker not in alive], alive)

    def now_ms(self) -> int:
        """Return the server's wall time; of a cluster, that of the first shard, for all workers."""
        return to_milliseconds(ask_redis(self._redis.time, self._keys.workers))

    def _entries(self, key: str, kind: type[_T]) -> dict[str, _T]:
        return decode_readable(ask_redis(lambda: self._redis.hgetall(key), key), kind)

    def _put(self, key: str, fields: Mapping[str, bytes]) -> None:
        if fields:
            ask_redis(lambda: scripts.run(self._redis, scripts.write_fields(key, fields)), key)

    def _drop(self, key: str, names: list[str]) -> None:
        if names:
            ask_redis(lambda: self._redis.hdel(key, *names), key)


def unreplaced(silent: Iterable[WorkerInfo], alive: Iterable[WorkerInfo]) -> list[WorkerInfo]:
    """Return the silent workers in whose place no other one was started; pure."""
    free, gone = list(alive), []
    for worker in sorted(silent, key=lambda worker: worker.heartbeat_at):
        successor = next((other for other in free if _follows(other, worker)), None)
        if successor is None:
            gone.append(worker)
        else:
            free.remove(successor)
    return gone


def _follows(worker: WorkerInfo, silent: WorkerInfo) -> bool:
    same = worker.host == silent.host and set(worker.providers) == set(silent.providers)
    return same and worker.started_at > silent.heartbeat_at
