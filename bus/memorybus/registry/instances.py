"""Instances beside those that the settings name: copies that a replay or a rebuild fills.

An instance has lanes, a home and dead letters of its own under its name, and takes what its plan
says. Every worker that serves the provider serves its copies too. Which instance of a provider
answers recalls and tools is one field of one hash, so that a swap is one step (G8).
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.config.path_names import InstanceName, InstanceOrNone
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.query.ranges import WHOLE, Plan
from memorybus.redis import scripts
from memorybus.redis.connect import translated
from memorybus.redis.hashes import decoded, legible
from memorybus.redis.keys import Keys
from memorybus.registry.pauses import Hold, held_beside, paused
from memorybus.registry.request import Asked

Purpose = Literal["replay", "rebuild", "verify", "added"]

_T = TypeVar("_T")


class Instance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A copy.

    Attributes:
        name: its own; for a rebuild ``<provider>@<number>``.
        provider: the instance of the settings whose kind and options it has.
        options: what differs from these options; never a secret.
        plan: what it takes of the history.
        purpose: what it was made for. ``added`` is no copy but the plan of an instance of the
            settings, under its own name: it was added late, and begins at some later time.
        dropped: whether it is to be removed, with its state; its home's worker does so.
        made_at: when (wall time, milliseconds).
        made_by: who, as ``user@host``.
        reason: why, in the operator's words.
        asked: the command's words, by which it is known that the same one goes on; None where
            nobody goes on with it, or an earlier release did not note them.
    """

    name: InstanceName
    provider: InstanceName
    options: dict[str, Any] = {}
    plan: Plan = WHOLE
    purpose: Purpose = "replay"
    dropped: bool = False
    made_at: int = 0
    made_by: str = ""
    reason: str = ""
    asked: Asked | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it stands beside the instance of the settings, instead of for it."""
        return self.name != self.provider


class Live(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which instance serves a provider.

    Attributes:
        instance: the one that answers recalls and tools.
        previous: the one before, kept for a rollback; "" if it was dropped.
        at: since when (wall time, milliseconds).
        by: who swapped.
        reason: why.
        leaving: the one before, until the command that swapped has ended; "" afterwards.
        back: whether a rollback let it serve.
        numbered: the highest number that a dropped generation had: no later one gets it.
    """

    instance: InstanceName
    previous: InstanceOrNone = ""
    at: int = 0
    by: str = ""
    reason: str = ""
    leaving: InstanceOrNone = ""
    back: bool = False
    numbered: int = 0


class Sight(msgspec.Struct, frozen=True):
    """The three hashes at one moment.

    Attributes:
        all: the copies, and the plans of those that were added late, by name.
        live: which instance serves a provider, by provider.
        held: whose lanes stand still, by name.
        ignored: names of entries that are no copy's, as they stand in Redis: hostile text.
    """

    all: Mapping[str, Instance] = {}
    live: Mapping[str, Live] = {}
    held: Mapping[str, Hold] = {}
    ignored: tuple[str, ...] = ()


class Fence(Protocol):
    """A lock without which nothing is changed: who was frozen and lost it does no harm."""

    @property
    def token(self) -> bytes:
        """Return what its entries hold while it is ours."""

    def beside(self, key: str) -> str:
        """Return the key of its entry in the slot of a hash."""

    def lost(self) -> MemoryBusError:
        """Return what is raised when it is ours no more."""


class Instances:
    """The three hashes. Belongs to one thread.

    Every method raises `LogUnavailable` without Redis, and `ForeignKey` if an entry is not ours;
    those that change something raise the fence's error if that is lost, and change nothing.

    Args:
        redis: the log's.
        keys: the namespace's.
        fence: of the command that changes them, if it takes a lock.
    """

    def __init__(self, redis: Redis, keys: Keys, fence: Fence | None = None) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys
        self._fence = fence

    def look(self) -> Sight:
        """Return everything in one round trip, for every heartbeat of a worker.

        An entry that cannot be read, perhaps of a later release, must not blind us: it is left
        out; but who is held by one stays held.
        """
        # What is held first: who is seen let go is seen with what was changed while it was held.
        keys = (self._keys.held, self._keys.live, self._keys.instances)

        def ask() -> list[dict[bytes, bytes]]:
            with self._redis.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.hgetall(key)
                return pipe.execute()

        held, live, copies = self._asked(ask, keys[0])
        holds = {
            name.decode("utf-8", "replace"): Hold("a hold that cannot be read") for name in held
        }
        ours = _copies(copies)
        ignored = sorted({name.decode("utf-8", "replace") for name in copies} - ours.keys())
        holds |= legible(held, Hold)
        return Sight(ours, legible(live, Live), holds, tuple(ignored))

    def all(self) -> dict[str, Instance]:
        """Return the copies, and the plans of those that were added late, by name; see `look`."""
        key = self._keys.instances
        return _copies(self._asked(lambda: self._redis.hgetall(key), key))

    def get(self, name: str) -> Instance | None:
        """Return one copy, None if there is none of that name; the others are no matter."""
        found = self._one(self._keys.instances, name, Instance)[1]
        return found if found is None or found.name == name else None

    def add(self, instance: Instance) -> None:
        """Make a copy known.

        Raises:
            ConfigError: there is one of that name.
        """
        body = msgspec.json.encode(instance)
        found = self._changed(self._keys.instances, instance.name, body, b"")
        if found is not None:
            raise ConfigError(f"there is an instance {instance.name!r} already")

    def change(self, known: Instance, to: Instance) -> bool:
        """Replace a copy's record; False if it is not as it was known any more."""
        key = self._keys.instances
        seen, now = self._one(key, known.name, Instance)  # whatever release wrote it in what bytes
        body = msgspec.json.encode(to)
        return now == known and self._changed(key, known.name, body, seen) == seen

    def remove(self, name: str, known: Instance | None = None) -> bool:
        """Forget a copy, if it is as `known`; its state and lanes are somebody else's business."""
        key = self._keys.instances
        if known is None:
            return self._changed(key, name, b"") is not None
        seen, now = self._one(key, name, Instance)
        return now == known and self._changed(key, name, b"", seen) == seen

    def live(self) -> dict[str, Live]:
        """Return which instance serves a provider, for those that were swapped once."""
        return self._read(self._keys.live, Live)

    def swap(self, provider: str, known: Live | None, to: Live) -> bool:
        """Let another instance serve a provider, in one step; False if somebody else was first."""
        key = self._keys.live
        seen, now = self._one(key, provider, Live)  # whatever release wrote it in what bytes
        body = msgspec.json.encode(to)
        return now == known and self._changed(key, provider, body, seen) == (seen or None)

    def unserve(self, provider: str) -> None:
        """Forget which copy serves a provider: one that is removed has none any more."""
        self._changed(self._keys.live, provider, b"")

    def held(self) -> dict[str, Hold]:
        """Return the instances whose lanes stand still."""
        return self._read(self._keys.held, Hold)

    def hold(self, name: str, why: Hold) -> None:
        """Let an instance's lanes stand still; workers obey within a heartbeat."""
        self._changed(self._keys.held, name, msgspec.json.encode(why))

    def let_go(self, name: str) -> bool:
        """Let an instance's lanes go on; False if they were not held."""
        return self._changed(self._keys.held, name, b"") is not None

    def pause(self, name: str, why: Hold) -> Hold | None:
        """Hold an instance, whatever commands do with it; return who does so already, if any."""
        return paused(self.rehold(name, lambda known: held_beside(known, why)))

    def rehold(self, name: str, change: Callable[[Hold | None], Hold | None]) -> Hold | None:
        """Change how an instance is held, in one step with the look at it; return how it was.

        Args:
            name: the instance.
            change: is told how it is held, and says how it shall be; perhaps more than once.
        """
        key = self._keys.held
        while True:
            seen, known = self._one(key, name, Hold)
            to = change(known)
            body = msgspec.json.encode(to) if to else b""
            if to == known or self._changed(key, name, body, seen) == (seen or None):
                return known

    def _read(self, key: str, kind: Any) -> dict[str, Any]:
        return decoded(key, self._asked(lambda: self._redis.hgetall(key), key), kind)

    def _one(self, key: str, name: str, kind: type[_T]) -> tuple[bytes, _T | None]:
        """Return an entry as it is written, and read; nothing and None if there is none."""
        body: bytes = self._asked(lambda: self._redis.hget(key, name), key) or b""
        return body, decoded(key, {name.encode(): body} if body else {}, kind).get(name)

    def _changed(self, key: str, field: str, to: bytes, seen: bytes | None = None) -> bytes | None:
        """Change a field if it is as `seen` (None: whatever it is); return what it was."""
        fence = self._fence
        where = (key, fence.beside(key)) if fence else (key,)
        args = (field, to, fence.token if fence else b"", *(() if seen is None else (seen,)))
        call = scripts.Call(scripts.CHANGE, where, args)
        found: Any = self._asked(lambda: scripts.run(self._redis, call), key)
        if fence and isinstance(found, int):
            raise fence.lost()
        return None if found is None else bytes(found)

    def _asked(self, ask: Callable[[], Any], where: str) -> Any:
        try:
            return ask()
        except (RedisError, OSError) as error:
            raise translated(error, where) from error


def _copies(bodies: Mapping[bytes, bytes]) -> dict[str, Instance]:
    """Return what stands under its own name; a stranger's entry must not speak for another."""
    return {name: one for name, one in legible(bodies, Instance).items() if one.name == name}


def live_name(provider: str, live: Mapping[str, Live]) -> str:
    """Return the instance that serves a provider; pure."""
    known = live.get(provider)
    return known.instance if known else provider


def answers(name: str, provider: str, live: Mapping[str, Live]) -> bool:
    """Say whether an instance answers those who wait for their events: the one that serves; pure.

    A swap takes place while the lanes of both pause, so each event is answered by one (G8).
    """
    return name == live_name(provider, live)
