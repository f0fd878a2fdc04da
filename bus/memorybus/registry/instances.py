"""Instances beside those that the settings name: copies that a replay or a rebuild fills.

An instance has lanes, a home and dead letters of its own under its name, and takes the events that
its plan names. Every worker that serves the provider serves its copies too. One field of one hash
says which instance of a provider answers recalls and tools, so a swap is one step (G8).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from redis import Redis

from memorybus.config.path_names import InstanceName, InstanceOrNone
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import WHOLE, Plan
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis
from memorybus.redis.hashes import decode_entries, decode_readable
from memorybus.redis.keys import Keys
from memorybus.registry.pauses import InstancePause, beside_command, lasting_pause
from memorybus.registry.steering import AS_CONFIGURED, RetryWish, Tuned, Tuning

Purpose = Literal["replay", "rebuild", "verify", "added"]

_T = TypeVar("_T")

_MOST_NAMED, _NAME_CHARS = 3, 60
"""Foreign entries that a message names, and the characters of each that it shows."""


class CopyRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a command was asked to make; the same request again goes on with what was begun.

    The request is compared, not its result: a lineage grows, and a moment that is still in the
    future soon means another place in the log.

    Attributes:
        query: which events, with lineages as they were named.
        since: the first moment, "" for the beginning.
        until: the last one, "" for none.
        options: what differs from the provider's.
        whole: whether nothing is taken over from the instance that serves.
        live: the instance that served then; "" where that does not matter.
    """

    query: Query = EVERYTHING
    since: str = ""
    until: str = ""
    options: dict[str, Any] = {}
    whole: bool = False
    live: str = ""


def normalise_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as a record holds them: dates given on a command line become texts."""
    return dict(msgspec.json.decode(msgspec.json.encode(options)))


class Instance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a copy, or of a plan.

    Attributes:
        name: its own; for a rebuild ``<provider>@<number>``.
        provider: the instance of the settings whose kind and options it has.
        options: what differs from these options; never a secret.
        plan: which events of the history it takes.
        purpose: what it was made for. ``added`` is no copy but the plan of an instance of the
            settings, under its own name: it was added late, and begins at some later time.
        dropped: whether it is to be removed with its state; its home's worker does so.
        made_at: when (wall time, milliseconds).
        made_by: who made it, as ``user@host``.
        reason: why, in the operator's words.
        asked: what the command was asked for, so that the same command goes on with it; None if
            no command may go on with it.
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
    asked: CopyRequest | None = None

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
        numbered: the highest number of a dropped generation; no later one gets it.
    """

    instance: InstanceName
    previous: InstanceOrNone = ""
    at: int = 0
    by: str = ""
    reason: str = ""
    leaving: InstanceOrNone = ""
    back: bool = False
    numbered: int = 0


class InstancesView(msgspec.Struct, frozen=True):
    """The hashes of instances at one moment.

    Attributes:
        all: the copies, and the plans of those that were added late, by name.
        live: which instance serves a provider, by provider.
        pauses: why an instance's lanes stand still, by name.
        ignored: names of entries that describe no copy, as they stand in Redis: hostile text.
        redo: the instances, among those asked about, with open requests about dead letters.
        tuned: limits of calls that hold instead of the settings', by provider.
        retries: the last request to retry now, by instance.
    """

    all: Mapping[str, Instance] = {}
    live: Mapping[str, Live] = {}
    pauses: Mapping[str, InstancePause] = {}
    ignored: tuple[str, ...] = ()
    redo: frozenset[str] = frozenset()
    tuned: Mapping[str, Tuned] = {}
    retries: Mapping[str, RetryWish] = {}

    def tuning(self, provider: str) -> Tuning:
        """Return the limits that hold for a provider instead of those of the settings."""
        known = self.tuned.get(provider)
        return known.tuning if known else AS_CONFIGURED


class ChangeLock(Protocol):
    """A command's lock on instances: a command that was frozen and lost it changes nothing."""

    @property
    def token(self) -> bytes:
        """Return what its entries hold while it is ours."""

    def fence_for(self, key: str) -> str:
        """Return the key of its entry in the slot of a hash."""

    def lost_error(self) -> MemoryBusError:
        """Return the error that is raised when it is not ours any more."""


class Instances:
    """Reads and changes the three hashes of instances. Belongs to one thread.

    Every method raises `LogUnavailable` without Redis, and `ForeignKey` if an entry is not ours;
    those that change something raise the lock's error if it is lost, and change nothing then.

    Args:
        redis: the log's.
        keys: the namespace's.
        lock: of the command that changes them, if it takes one.
    """

    def __init__(self, redis: Redis, keys: Keys, lock: ChangeLock | None = None) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys
        self._lock = lock

    def read_view(self, redo: Collection[str] = ()) -> InstancesView:
        """Return everything in one round trip, for every heartbeat of a worker.

        Args:
            redo: instances to look for open requests about dead letters (`InstancesView.redo`).

        An entry that cannot be read, perhaps of a later release, is left out, so that it hides no
        other; but an instance whose pause cannot be read stays paused.
        """
        # Pauses first: an instance seen as resumed is seen with what was changed during its pause.
        ours = self._keys
        keys = (ours.pauses, ours.live, ours.instances, ours.tuned, ours.retries)

        def ask() -> list[Any]:
            with self._redis.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.hgetall(key)
                for name in redo:
                    pipe.exists(ours.redo(name))
                return pipe.execute()

        paused, live, copies, tuned, retries, *asking = ask_redis(ask, keys[0])
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
            decode_readable(tuned, Tuned),
            decode_readable(retries, RetryWish),
        )

    def all(self) -> dict[str, Instance]:
        """Return the copies, with the plans of those that were added late; see `read_view`."""
        key = self._keys.instances
        return _decode_copies(ask_redis(lambda: self._redis.hgetall(key), key))

    def get(self, name: str) -> Instance | None:
        """Return one copy, or None; entries of other names do not matter."""
        found = self._entry(self._keys.instances, name, Instance)[1]
        return found if found is None or found.name == name else None

    def add(self, instance: Instance) -> None:
        """Make a copy known.

        Raises:
            ConfigError: there is one of that name.
        """
        body = msgspec.json.encode(instance)
        found = self._change(self._keys.instances, instance.name, body, b"")
        if found is not None:
            raise ConfigError(f"there is an instance {instance.name!r} already")

    def change(self, known: Instance, to: Instance) -> bool:
        """Replace a copy's record; return False if it is not as `known` any more."""
        key = self._keys.instances
        seen, now = self._entry(key, known.name, Instance)  # another release may write other bytes
        body = msgspec.json.encode(to)
        return now == known and self._change(key, known.name, body, seen) == seen

    def remove(self, name: str, known: Instance | None = None) -> bool:
        """Delete a copy's record, if it is as `known`; its state and its lanes stay."""
        key = self._keys.instances
        if known is None:
            return self._change(key, name, b"") is not None
        seen, now = self._entry(key, name, Instance)
        return now == known and self._change(key, name, b"", seen) == seen

    def live(self) -> dict[str, Live]:
        """Return which instance serves a provider, for providers that were swapped once."""
        return self._read(self._keys.live, Live)

    def swap(self, provider: str, known: Live | None, to: Live) -> bool:
        """Let another instance serve a provider; return False if it is not as `known` any more."""
        key = self._keys.live
        seen, now = self._entry(key, provider, Live)  # another release may write other bytes
        body = msgspec.json.encode(to)
        return now == known and self._change(key, provider, body, seen) == (seen or None)

    def unserve(self, provider: str) -> None:
        """Forget which copy serves a provider, when the provider is removed."""
        self._change(self._keys.live, provider, b"")

    def pauses(self) -> dict[str, InstancePause]:
        """Return the instances whose lanes stand still, and why."""
        return self._read(self._keys.pauses, InstancePause)

    def set_pause(self, name: str, why: InstancePause) -> None:
        """Let an instance's lanes stand still; workers obey within a heartbeat."""
        self._change(self._keys.pauses, name, msgspec.json.encode(why))

    def resume(self, name: str) -> bool:
        """Let an instance's lanes go on; return False if they were not paused."""
        return self._change(self._keys.pauses, name, b"") is not None

    def pause(self, name: str, why: InstancePause) -> InstancePause | None:
        """Pause an instance until somebody resumes it; return the pause it had already, if any."""
        return lasting_pause(self.change_pause(name, lambda known: beside_command(known, why)))

    def change_pause(
        self, name: str, change: Callable[[InstancePause | None], InstancePause | None]
    ) -> InstancePause | None:
        """Change an instance's pause in one step with a look at it; return what it was.

        Args:
            name: the instance.
            change: takes the pause as it is and returns it as it must be; may be called again.
        """
        key = self._keys.pauses
        while True:
            seen, known = self._entry(key, name, InstancePause)
            to = change(known)
            body = msgspec.json.encode(to) if to else b""
            if to == known or self._change(key, name, body, seen) == (seen or None):
                return known

    def _read(self, key: str, kind: Any) -> dict[str, Any]:
        return decode_entries(key, ask_redis(lambda: self._redis.hgetall(key), key), kind)

    def _entry(self, key: str, name: str, kind: type[_T]) -> tuple[bytes, _T | None]:
        """Return an entry's bytes and what they mean; empty and None if there is no entry."""
        body: bytes = ask_redis(lambda: self._redis.hget(key, name), key) or b""
        return body, decode_entries(key, {name.encode(): body} if body else {}, kind).get(name)

    def _change(self, key: str, field: str, to: bytes, seen: bytes | None = None) -> bytes | None:
        """Change a field if it is as `seen` (None: whatever it is); return what it was."""
        lock = self._lock
        held = scripts.HeldLock(lock.fence_for(key), lock.token) if lock else None
        call = scripts.change_field(key, field, to, seen=seen, lock=held)
        found: bytes | scripts.LockLost | None = ask_redis(
            lambda: scripts.run(self._redis, call), key
        )
        if lock and isinstance(found, scripts.LockLost):
            raise lock.lost_error()
        return found if isinstance(found, bytes) else None


def _decode_copies(bodies: Mapping[bytes, bytes]) -> dict[str, Instance]:
    """Return the records that stand under their own name; others are not ours."""
    return {
        name: one for name, one in decode_readable(bodies, Instance).items() if one.name == name
    }


def live_name(provider: str, live: Mapping[str, Live]) -> str:
    """Return the instance that serves a provider; pure."""
    known = live.get(provider)
    return known.instance if known else provider


def is_live_instance(name: str, provider: str, live: Mapping[str, Live]) -> bool:
    """Say whether an instance is the one that serves, and so answers those who wait for events.

    A swap takes place while the lanes of both pause, so each event is answered by one (G8).
    """
    return name == live_name(provider, live)


def ignored_entries(view: InstancesView, configured: Collection[str]) -> tuple[str, ...]:
    """Return the names of entries that are ignored, since they describe no copy; hostile text.

    Anybody who can write to Redis may have made them. A copy that has the name of an instance of
    the settings is ignored too: no command makes one, and it would write where its namesake does.
    """
    namesakes = (name for name, one in view.all.items() if one.is_copy and name in configured)
    return (*view.ignored, *namesakes)


def describe_ignored(names: Sequence[str]) -> str:
    """Return a line of plain characters that names the first ignored entries; pure."""
    shown = ", ".join(ascii(name[:_NAME_CHARS]) for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"entries that are no copy's are ignored: {shown}{more}"
