"""Instances in addition to those that the settings name: copies that a replay or rebuild fills.

An instance has its own lanes, home and dead letters under its name, and takes the events that its
plan names. Every worker that serves the provider serves its copies too. One field of one hash says
which instance of a provider answers recalls and tools, so a swap is one step (G8). An instance may
be paused, and an operator may ask for an immediate retry.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from redis import Redis

from memorybus.config.path_names import InstanceName, InstanceOrNone
from memorybus.errors import ConfigError
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import WHOLE, Plan
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis, redis_errors
from memorybus.redis.hashes import decode_entries, decode_readable
from memorybus.redis.keys import Keys
from memorybus.registry.rebuild_lock import RebuildLock

PauseState = Literal["", "kept", "dropped", "removed"]


class InstancePause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an instance's lanes are paused."""

    reason: str = ""  # the reason, for people
    by: str = ""  # who paused them, as ``user@host``
    at: int = 0  # since when (wall time, milliseconds)
    candidate: str = ""  # the copy for which a command pauses the instance; "" for any other pause
    # an operator's pause, which stays when the command's pause ends
    under: "InstancePause | None" = None
    # why it is paused for good: it is ``kept`` for a rollback, its generation was ``dropped``, or
    # its provider was ``removed``; "" if somebody paused it
    state: PauseState = ""


def lasting_pause(pause: InstancePause | None) -> InstancePause | None:
    """Return the pause that stays when no command pauses the instance any more."""
    return pause.under if pause is not None and pause.candidate else pause


def over_lasting(pause: InstancePause | None, why: InstancePause) -> InstancePause:
    """Return a command's pause `why`, which keeps an operator's pause beneath it."""
    return msgspec.structs.replace(why, under=lasting_pause(pause))


def beside_command(pause: InstancePause | None, why: InstancePause) -> InstancePause:
    """Return an operator's pause `why`, added to a command's; an earlier operator's pause stays."""
    if lasting_pause(pause) is not None or pause is None:
        return pause or why
    return msgspec.structs.replace(pause, under=why)


def command_part(pause: InstancePause | None) -> InstancePause | None:
    """Return the pause that stays when no operator pauses the instance any more."""
    if pause is None or not pause.candidate:
        return None
    return msgspec.structs.replace(pause, under=None)


def command_pause(what: str, provider: str, candidate: str, by: str, at: int) -> InstancePause:
    """Return the pause by which a command prepares a copy; its reason tells people what began."""
    return InstancePause(f"{what} of {provider}: {candidate} is prepared", by, at, candidate)


def prepared_copy(pause: InstancePause | None) -> str:
    """Return the copy for which a command pauses an instance; "" if none does."""
    return pause.candidate if pause else ""


class RetryRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to retry now what waits for another try of an instance."""

    # The request's id. A worker carries out each request once, and ignores requests from before it
    # started, because none of its events waited then.
    id: str
    by: str = ""  # who asked for it, as ``user@host``
    at: int = 0  # when (wall time, milliseconds)


class RetryRequests:
    """Writes the requests. Belongs to one thread; raises `LogUnavailable` without Redis."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.retries

    def send(self, instance: str, request: RetryRequest) -> None:
        body = msgspec.json.encode(request)
        ask_redis(lambda: self._redis.hset(self._key, instance, body), self._key)

    def forget(self, instance: str) -> None:
        ask_redis(lambda: self._redis.hdel(self._key, instance), self._key)


Purpose = Literal["replay", "rebuild", "verify", "added"]
_T = TypeVar("_T")
_MOST_NAMED, _NAME_CHARS = 3, 60
"""How many foreign entries a message names, and how many characters of each it shows."""


class CopyRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a command was asked to make; the same request again continues what was begun.

    Requests are compared, not their results: a lineage grows, and a moment that is still in the
    future will mean another place in the log.
    """

    query: Query = EVERYTHING  # which events the copy takes, with lineages as they were named
    since: str = ""  # the first moment, "" for the beginning
    until: str = ""  # the last moment, "" for none
    options: dict[str, Any] = {}  # the options that differ from the provider's
    whole: bool = False  # whether nothing is taken over from the instance that serves
    live: str = ""  # the instance that served then; "" where that does not matter


def normalise_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as a record holds them: dates given on a command line become texts."""
    return dict(msgspec.json.decode(msgspec.json.encode(options)))


class Instance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a copy, or of a plan."""

    name: InstanceName  # its own name; for a rebuild ``<provider>@<number>``
    provider: InstanceName  # the instance of the settings whose kind and options it has
    options: dict[str, Any] = {}  # the options that differ from these; never a secret
    plan: Plan = WHOLE  # which events of the history it takes
    # What it was made for. An ``added`` record is not a copy but the plan of an instance of the
    # settings, under its own name: it was added late, and begins at some later time.
    purpose: Purpose = "replay"
    # whether it is to be removed with its state; a worker at its home does so
    dropped: bool = False
    made_at: int = 0  # when it was made (wall time, milliseconds)
    made_by: str = ""  # who made it, as ``user@host``
    reason: str = ""  # why it was made, in the operator's words
    # what the command was asked for, so that the same command can continue it; None if no command
    # may
    asked: CopyRequest | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it is a copy, and not an instance that the settings name."""
        return self.name != self.provider


class Live(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which instance serves a provider."""

    instance: InstanceName  # the instance that answers recalls and tools
    # the instance that served before, kept for a rollback; "" if it was dropped
    previous: InstanceOrNone = ""
    at: int = 0  # since when (wall time, milliseconds)
    by: str = ""  # who swapped the instances, as ``user@host``
    reason: str = ""  # why
    # the instance that served before, until the command that swapped has ended; "" afterwards
    leaving: InstanceOrNone = ""
    back: bool = False  # whether it serves because of a rollback
    numbered: int = 0  # the highest number of a dropped generation, which no later one gets


class InstancesView(msgspec.Struct, frozen=True):
    """The hashes of instances at one moment."""

    # the copies, and the plans of those that were added late, by name
    all: Mapping[str, Instance] = {}
    live: Mapping[str, Live] = {}  # which instance serves a provider, by provider
    pauses: Mapping[str, InstancePause] = {}  # why the lanes of an instance are paused, by name
    # names of entries that do not describe a copy, as Redis has them: hostile text
    ignored: tuple[str, ...] = ()
    # the instances, among those asked about, with open requests about dead letters
    redo: frozenset[str] = frozenset()
    retries: Mapping[str, RetryRequest] = {}  # the last request to retry now, by instance


class Instances:
    """Reads and changes the three hashes of instances. Belongs to one thread.

    A change raises the lock's error if the lock is lost, and changes nothing then.
    """

    def __init__(self, redis: Redis, keys: Keys, lock: RebuildLock | None = None) -> None:
        self._redis = redis
        self._keys = keys
        self._lock = lock

    def read_view(self, redo: Collection[str] = ()) -> InstancesView:
        """Return everything in one round trip, for every heartbeat of a worker.

        An unreadable entry is left out, but an instance whose pause cannot be read stays paused.
        """
        # Pauses first: an instance seen as resumed is seen with what was changed during its pause.
        ours = self._keys
        keys = (ours.pauses, ours.live, ours.instances, ours.retries)
        with redis_errors(keys[0]), self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hgetall(key)
            for name in redo:
                pipe.exists(ours.redo(name))
            paused, live, copies, retries, *asking = pipe.execute()
        pauses = {
            name.decode("utf-8", "replace"): InstancePause("a pause that cannot be read")
            for name in paused
        }
        made = _decode_copies(copies)
        ignored = sorted({name.decode("utf-8", "replace") for name in copies} - made.keys())
        pauses |= decode_readable(paused, InstancePause)
        wanted = frozenset(name for name, there in zip(redo, asking, strict=True) if there)
        return InstancesView(
            made,
            decode_readable(live, Live),
            pauses,
            tuple(ignored),
            wanted,
            decode_readable(retries, RetryRequest),
        )

    def all(self) -> dict[str, Instance]:
        """Return the copies, with the plans of those that were added late; see `read_view`."""
        key = self._keys.instances
        return _decode_copies(ask_redis(lambda: self._redis.hgetall(key), key))

    def get(self, name: str) -> Instance | None:
        instance = self._entry(self._keys.instances, name, Instance)[1]
        return instance if instance is None or instance.name == name else None

    def add(self, instance: Instance) -> None:
        """Register a copy. `ConfigError`: an instance of that name exists."""
        body = msgspec.json.encode(instance)
        previous = self._change(self._keys.instances, instance.name, body, b"")
        if previous is not None:
            raise ConfigError(f"an instance {instance.name!r} exists already; choose another name")

    def change(self, instance: Instance, to: Instance) -> bool:
        key = self._keys.instances
        # another release may write other bytes
        seen, now = self._entry(key, instance.name, Instance)
        body = msgspec.json.encode(to)
        return now == instance and self._change(key, instance.name, body, seen) == seen

    def remove(self, name: str, instance: Instance | None = None) -> bool:
        key = self._keys.instances
        if instance is None:
            return self._change(key, name, b"") is not None
        seen, now = self._entry(key, name, Instance)
        return now == instance and self._change(key, name, b"", seen) == seen

    def live(self) -> dict[str, Live]:
        """Return which instance serves a provider, for providers that were swapped once."""
        return self._read(self._keys.live, Live)

    def swap(self, provider: str, live: Live | None, to: Live) -> bool:
        key = self._keys.live
        seen, now = self._entry(key, provider, Live)  # another release may write other bytes
        body = msgspec.json.encode(to)
        return now == live and self._change(key, provider, body, seen) == (seen or None)

    def unserve(self, provider: str) -> None:
        self._change(self._keys.live, provider, b"")

    def pauses(self) -> dict[str, InstancePause]:
        return self._read(self._keys.pauses, InstancePause)

    def set_pause(self, name: str, why: InstancePause) -> None:
        self._change(self._keys.pauses, name, msgspec.json.encode(why))

    def resume(self, name: str) -> bool:
        return self._change(self._keys.pauses, name, b"") is not None

    def pause(self, name: str, why: InstancePause) -> InstancePause | None:
        """Pause an instance until somebody resumes it; return the pause it had already, if any."""
        return lasting_pause(self.change_pause(name, lambda pause: beside_command(pause, why)))

    def change_pause(
        self, name: str, change: Callable[[InstancePause | None], InstancePause | None]
    ) -> InstancePause | None:
        """Change an instance's pause in one step; return the old one. May repeat `change`."""
        key = self._keys.pauses
        while True:
            seen, pause = self._entry(key, name, InstancePause)
            to = change(pause)
            body = msgspec.json.encode(to) if to else b""
            if to == pause or self._change(key, name, body, seen) == (seen or None):
                return pause

    def _read(self, key: str, kind: Any) -> dict[str, Any]:
        return decode_entries(key, ask_redis(lambda: self._redis.hgetall(key), key), kind)

    def _entry(self, key: str, name: str, kind: type[_T]) -> tuple[bytes, _T | None]:
        """Return an entry's bytes and what they mean; empty and None if there is no entry."""
        body: bytes = ask_redis(lambda: self._redis.hget(key, name), key) or b""
        return body, decode_entries(key, {name.encode(): body} if body else {}, kind).get(name)

    def _change(self, key: str, field: str, to: bytes, seen: bytes | None = None) -> bytes | None:
        lock = self._lock
        held = (lock.fence_for(key), lock.token) if lock else None
        call = scripts.change_field(key, field, to, seen=seen, lock=held)
        found: bytes | scripts.LockLost | None = ask_redis(
            lambda: scripts.run(self._redis, call), key
        )
        if lock and isinstance(found, scripts.LockLost):
            raise lock.lost_error()
        return found if isinstance(found, bytes) else None


def _decode_copies(bodies: Mapping[bytes, bytes]) -> dict[str, Instance]:
    """Return the records that are stored under their own names; others are not ours."""
    return {
        name: instance
        for name, instance in decode_readable(bodies, Instance).items()
        if instance.name == name
    }


def live_name(provider: str, live: Mapping[str, Live]) -> str:
    record = live.get(provider)
    return record.instance if record else provider


def is_live_instance(name: str, provider: str, live: Mapping[str, Live]) -> bool:
    """Return whether an instance is the one that serves, and so answers those who wait for events.

    A swap takes place while the lanes of both instances are paused, so exactly one of them answers
    for each event (G8).
    """
    return name == live_name(provider, live)


def ignored_entries(view: InstancesView, configured: Collection[str]) -> tuple[str, ...]:
    """Return the names of ignored entries, which describe no copy: hostile text."""
    namesakes = (
        name for name, instance in view.all.items() if instance.is_copy and name in configured
    )
    return (*view.ignored, *namesakes)


def describe_ignored(names: Sequence[str]) -> str:
    shown = ", ".join(ascii(name[:_NAME_CHARS]) for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"entries that do not describe a copy are ignored: {shown}{more}"
