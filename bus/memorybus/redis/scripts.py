"""One typed function for each Lua script in ``lua/``, which has the script's name.

Only this function calls the script. It returns a `ScriptCall`, a value that knows how to read its
reply. `run` sends one, `run_many` sends several in one round trip. A script that the server has
forgotten (after a restart or a failover) is loaded and called again, which is safe because the
server refused the call before the script did anything.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from importlib import resources
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from redis import Redis
from redis.exceptions import NoScriptError, ResponseError

from memorybus.errors import LeaseLost
from memorybus.redis.keys import ARCHIVE_LANE, Keys
from memorybus.redis.owned_lane import OwnedLane

Arg: TypeAlias = str | bytes | int

R = TypeVar("R")


class Script(msgspec.Struct, frozen=True):
    """A script's name, source and the SHA-1 by which the server knows it."""

    name: str
    source: str
    sha: str


def _load(name: str, *shared: str) -> Script:
    """Read a script, and put before it the files of ``lua/shared/`` that it needs."""
    directory = resources.files("memorybus.redis").joinpath("lua")
    files = [*(f"shared/{one}.lua" for one in shared), f"{name}.lua"]
    source = "".join(directory.joinpath(file).read_text("utf-8") for file in files)
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


_APPEND = _load("append", "server_time", "server_restart", "known_producers", "log_entries")
_NOTE_RESTING_PRODUCER = _load("note_resting_producer", "server_time", "known_producers")
_FORGET_PRODUCER = _load("forget_producer", "known_producers")
_ACQUIRE = _load("acquire", "server_time", "server_restart", "lane_death")
_RENEW = _load("renew", "server_restart")
_RELEASE = _load("release")
_RECLAIM = _load("reclaim", "lane_death")
_NOTE_NEW_LANE = _load("note_new_lane", "server_time", "server_restart")
_COMMIT = _load("commit", "server_time", "server_restart")
_NOTE_TRIES = _load("note_tries", "server_restart")
_PARK = _load("park", "server_restart", "log_entries")
_SETTLE = _load("settle", "server_restart")
_WRITE_FIELDS = _load("write_fields")
_CHANGE_FIELD = _load("change_field")
_PROLONG_LOCK = _load("prolong_lock")
_REQUEST_RECALL = _load("request_recall")
_SPEND = _load("spend")
_STORE_WARM = _load("store_warm")
_LOOK_AT_PARTITION = _load("look_at_partition", "server_time", "log_entries")
_READ_NUMBERS = _load("read_numbers", "log_entries")
_SEAL = _load("seal", "server_time", "server_restart", "log_entries")
_RENUMBER = _load("renumber", "server_restart", "log_entries")


class ScriptCall(msgspec.Struct, Generic[R], frozen=True):
    """One call of a script, not yet sent.

    Attributes:
        script: the script.
        keys: its keys, as the script's header names them.
        args: its arguments, as the script's header names them.
        read: turns the server's reply into what the call returns.
    """

    script: Script
    keys: Sequence[str]
    args: Sequence[Arg]
    read: Callable[[Any], R]


def run(redis: Redis, call: ScriptCall[R]) -> R:
    """Run one call.

    Raises:
        redis.RedisError: as the server or the connection says.
    """
    reply = run_many(redis, [call])[0]
    if isinstance(reply, Exception):
        raise reply
    return reply


def run_many(redis: Redis, calls: Sequence[ScriptCall[R]]) -> list[R | Exception]:
    """Run calls in one round trip; a call that failed gives its exception in its place.

    Raises:
        redis.ConnectionError: the connection broke; some calls may have been executed.
    """
    replies = _send(redis, calls)
    unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        for script in {calls[i].script.name: calls[i].script for i in unknown}.values():
            redis.script_load(script.source)
        for i, reply in zip(unknown, _send(redis, [calls[i] for i in unknown]), strict=True):
            replies[i] = reply
    return [
        reply if isinstance(reply, Exception) else call.read(reply)
        for call, reply in zip(calls, replies, strict=True)
    ]


def _send(redis: Redis, calls: Sequence[ScriptCall[Any]]) -> list[Any]:
    if len(calls) == 1:
        return [_send_one(redis, calls[0])]
    with redis.pipeline(transaction=False) as pipe:
        for call in calls:
            pipe.evalsha(call.script.sha, len(call.keys), *call.keys, *call.args)
        return list(pipe.execute(raise_on_error=False))


def _send_one(redis: Redis, call: ScriptCall[Any]) -> Any:
    try:
        return redis.evalsha(call.script.sha, len(call.keys), *call.keys, *call.args)
    except ResponseError as error:
        return error


def _no_reply(_: Any) -> None:
    """Ignore the reply of a script that returns nothing."""


# -- producers ------------------------------------------------------------------------------------


class OutgoingEvent(msgspec.Struct, frozen=True):
    """An event on its way into the log: the producer's sequence, event id, digest and body."""

    sequence: int
    id: bytes
    digest: bytes
    body: bytes


class Appended(msgspec.Struct, frozen=True):
    """A batch is in the log, and `conflicts` are indexes of events known with another payload."""

    conflicts: list[int]


class TailLost(msgspec.Struct, frozen=True):
    """Redis has lost its tail: the last sequence that it has of this producer."""

    last: int


def append(
    keys: Keys,
    partition: int,
    producer: str,
    expected: int,
    events: Sequence[OutgoingEvent],
    *,
    window_ms: int,
    max_ids: int,
    possibly_delivered: int = 0,
) -> ScriptCall[Appended | TailLost]:
    """Append a batch to one partition, each event once (G2).

    Args:
        producer: the producer of the events.
        expected: the last sequence that Redis took of the producer, as the producer knows it.
        events: the events, in order.
        window_ms: how long one window of event ids lasts.
        max_ids: the most event ids in a window.
        possibly_delivered: events up to this sequence may have been in the log before, and are
            marked as such.
    """
    args: list[Arg] = [producer, expected, window_ms, max_ids, possibly_delivered]
    for event in events:
        args += (event.sequence, event.id, event.digest, event.body)
    new, old = keys.seen(partition)
    log, state = keys.log(partition), keys.state(partition)
    where = (log, state, keys.producers(partition), new, old)
    return ScriptCall(_APPEND, where, args, _read_append)


def _read_append(reply: Any) -> Appended | TailLost:
    if reply[0] == 0:
        return TailLost(int(reply[1]))
    return Appended([int(index) for index in reply[1]])


def note_resting_producer(
    keys: Keys, partition: int, producer: str, sequence: int, window_ms: int
) -> ScriptCall[None]:
    """Note that a producer has deleted every event up to a sequence, and sends none of them again.

    Redis may forget such a producer after `window_ms` of silence (G10).
    """
    where = (keys.producers(partition), keys.state(partition))
    return ScriptCall(_NOTE_RESTING_PRODUCER, where, (producer, sequence, window_ms), _no_reply)


def forget_producer(keys: Keys, partition: int, producer: str) -> ScriptCall[None]:
    """Forget a producer whose spool is discarded."""
    return ScriptCall(_FORGET_PRODUCER, (keys.producers(partition),), (producer,), _no_reply)


# -- lanes ----------------------------------------------------------------------------------------


class AcquiredLane(msgspec.Struct, frozen=True):
    """A lane that is ours now: its new epoch, and what Redis knows of its progress.

    Attributes:
        epoch: our fencing token.
        entry: the checkpoint.
        n: the checkpoint's dense number.
        done: which later events are done already (see `memorybus.registry.done_set`).
        suspects: by n the deaths of owners at which an event was being called, as JSON; they may
            be done by now.
        sent: the highest n that may have been given to the provider before.
        deaths: how many owners in a row died without advancing the checkpoint.
        head: the last dense number in the log.
    """

    epoch: int
    entry: str
    n: int
    done: bytes = b""
    suspects: bytes = b""
    sent: int = 0
    deaths: int = 0
    head: int = 0


def acquire(
    keys: Keys, partition: int, provider: str, worker: str, ms: int, floor: int = 0, token: str = ""
) -> ScriptCall[AcquiredLane | None]:
    """Take a lane if its lease is free or `token`, with an epoch above `floor`; None if it is not.

    Args:
        partition: the lane's partition.
        provider: the lane's provider.
        worker: the worker that takes it.
        ms: milliseconds that the lease lasts.
        floor: the newest epoch that the provider's own store has seen.
        token: what the lease holds while it is still ours; "" for none.
    """
    lease, lane = keys.lease(partition, provider), keys.lane(partition, provider)
    where = (lease, lane, keys.log(partition), keys.state(partition))
    return ScriptCall(_ACQUIRE, where, (worker, ms, provider, floor, token), _read_acquire)


def _read_acquire(reply: Any) -> AcquiredLane | None:
    if reply is None:
        return None
    epoch, entry, n, done, suspects, *numbers = reply
    return AcquiredLane(int(epoch), entry.decode(), int(n), done, suspects, *map(int, numbers))


class Renewal(msgspec.Struct, frozen=True):
    """A lease that is to be prolonged.

    Attributes:
        lease: the lease's key.
        lane: the lane's key.
        epoch: the fencing token with which the lease was given.
        worker: the lease's owner.
        ms: milliseconds that it is to last from now.
    """

    lease: str
    lane: str
    epoch: int
    worker: str
    ms: int


def renew(renewals: Sequence[Renewal]) -> ScriptCall[list[bool | Exception]]:
    """Prolong leases of one slot; return for each whether it is still ours, or the error."""
    keys = [key for one in renewals for key in (one.lease, one.lane)]
    args = [arg for one in renewals for arg in (one.ms, one.epoch, one.worker)]
    return ScriptCall(_RENEW, keys, args, _read_renewals)


def _read_renewals(reply: Any) -> list[bool | Exception]:
    return [one if isinstance(one, Exception) else bool(one) for one in reply]


def release(lease: str, lane: str, token: str) -> ScriptCall[None]:
    """Give up a lease that is still ours."""
    return ScriptCall(_RELEASE, (lease, lane), (token,), _no_reply)


def reclaim(keys: Keys, partition: int, provider: str, worker: str) -> ScriptCall[bool]:
    """Free the lane of a worker that is known to be dead; return whether the worker had it (G5)."""
    where = (keys.lease(partition, provider), keys.lane(partition, provider))
    return ScriptCall(_RECLAIM, where, (worker,), bool)


def note_new_lane(keys: Keys, partition: int, provider: str) -> ScriptCall[None]:
    """Note that a lane is new, unless Redis knows it already (G4)."""
    return ScriptCall(_NOTE_NEW_LANE, (keys.lane(partition, provider),), (), _no_reply)


class Checkpoint(msgspec.Struct, frozen=True):
    """A lane's progress.

    Attributes:
        entry: everything up to this entry is done.
        n: its dense number.
        done: which later events are done already.
        sent: the highest n that may have been given to the provider; "" to leave it as it is.
    """

    entry: str
    n: int
    done: bytes = b""
    sent: int | str = ""


def _read_written(lane: OwnedLane | str, reply: Any) -> None:
    """Return if the lane's owner has written; else another owner or server gave an epoch (G5)."""
    if not reply:
        raise LeaseLost(f"{lane} is not the lane's newest: it has another owner", fenced=True)


def commit(lane: OwnedLane, at: Checkpoint) -> ScriptCall[None]:
    """Advance a lane's checkpoint."""
    args = (lane.epoch, at.entry, at.n, lane.provider, at.done, at.sent)
    where = (lane.key, lane.keys.log(lane.partition))
    return ScriptCall(_COMMIT, where, args, partial(_read_written, lane))


def note_tries(lane: OwnedLane, tries: bytes, suspects: bytes) -> ScriptCall[None]:
    """Note what a provider is called for next on a lane whose owners died, and its suspects (G6).

    Both are JSON, or b"" for none (see the script).
    """
    return ScriptCall(
        _NOTE_TRIES, (lane.key,), (lane.epoch, tries, suspects), partial(_read_written, lane)
    )


def park(lane: OwnedLane, records: Sequence[tuple[str, str, bytes]]) -> ScriptCall[None]:
    """Park events (entry, key, JSON record); those that were parked before are left out (G6)."""
    args: list[Arg] = [lane.epoch]
    for entry, key, record in records:
        args += (entry, key, record)
    return ScriptCall(_PARK, (lane.key, lane.parked, lane.dead), args, partial(_read_written, lane))


class Settled(Enum):
    """What became of a dead letter that was settled or amended."""

    GONE = 0
    """It did not exist any more."""

    DONE = 1
    KEY_FREED = 2
    """It was the last one of its key; the key is not parked any more."""


def _read_settled(lane: OwnedLane, reply: Any) -> Settled:
    _read_written(lane, reply >= 0)
    return Settled(reply)


class LetterAddress(msgspec.Struct, frozen=True):
    """Where a dead letter is: its id among them, its event's entry in the log, its order key."""

    id: str
    entry: str
    key: str


def settle(
    lane: OwnedLane,
    letter: LetterAddress,
    *,
    amendment: bytes = b"",
    event: bytes = b"",
) -> ScriptCall[Settled]:
    """Settle a dead letter, or amend it, and append `event` to the log (G6).

    A letter that is settled with an event counts as discarded.
    """
    keys, partition = lane.keys, lane.partition
    where = (
        lane.key,
        lane.parked,
        lane.dead,
        keys.amended(partition, lane.provider),
        keys.log(partition),
        keys.state(partition),
    )
    args = (lane.epoch, letter.id, letter.entry, letter.key, amendment, event)
    return ScriptCall(_SETTLE, where, args, partial(_read_settled, lane))


# -- hashes and locks -----------------------------------------------------------------------------


def write_fields(key: str, fields: Mapping[str, bytes]) -> ScriptCall[None]:
    """Write fields of a hash, also when the server is out of memory."""
    args = [part for field in fields.items() for part in field]
    return ScriptCall(_WRITE_FIELDS, (key,), args, _no_reply)


class HeldLock(msgspec.Struct, frozen=True):
    """The key of a lock, and what it holds while it is ours."""

    key: str
    token: bytes


class LockLost(msgspec.Struct, frozen=True):
    """Nothing was changed: the lock is not ours any more."""


def change_field(
    key: str,
    field: str | bytes,
    to: bytes,
    *,
    seen: bytes | None = None,
    lock: HeldLock | None = None,
) -> ScriptCall[bytes | LockLost | None]:
    """Check and change a field of a hash in one step; return its value from before.

    Args:
        key: the hash.
        field: the field's name.
        to: the new value; empty to delete the field.
        seen: the field is changed only if it has this value (empty: only if it does not exist);
            None to change it whatever it has.
        lock: nothing is changed unless this lock, in the hash's slot, is still ours (G8); None if
            no lock is needed.
    """
    where = (key, lock.key) if lock else (key,)
    args = (field, to, lock.token if lock else b"", *(() if seen is None else (seen,)))
    return ScriptCall(_CHANGE_FIELD, where, args, _read_change)


def _read_change(reply: Any) -> bytes | LockLost | None:
    if isinstance(reply, int):
        return LockLost()
    return None if reply is None else bytes(reply)


def prolong_lock(key: str, token: bytes, life_ms: int) -> ScriptCall[bool]:
    """Let a lock expire in `life_ms` (0: delete it now); return whether it was ours."""
    return ScriptCall(_PROLONG_LOCK, (key,), (token, life_ms), bool)


# -- recall ---------------------------------------------------------------------------------------


def request_recall(keys: Keys, slot: str, request: bytes, ttl_ms: int) -> ScriptCall[int]:
    """Ask for a recall; return its generation."""
    return ScriptCall(_REQUEST_RECALL, (keys.want(slot),), (request, ttl_ms), int)


def store_warm(
    keys: Keys, slot: str, provider: str, generation: int, result: bytes, ttl_ms: int
) -> ScriptCall[None]:
    """Store a result, unless there is a newer request or result."""
    args = (provider, generation, result, ttl_ms)
    return ScriptCall(_STORE_WARM, keys.slot(slot), args, _no_reply)


# -- the log as it stands, and the archive --------------------------------------------------------


class NumberedEntry(msgspec.Struct, frozen=True):
    """An entry of the log and its dense number."""

    entry: str
    n: int


class PartitionLook(msgspec.Struct, frozen=True):
    """A partition at one moment. Entries that are not ours are skipped; None stands for no entry.

    Attributes:
        length: how many entries it has.
        n: the last dense number given.
        sealed: the number up to which it may be trimmed.
        size: bytes of its stream; 0 if the server does not say.
        first: the first entry.
        last: the last entry.
        before: the last entry up to the one that was asked for.
        after: the first entry behind that.
        now_ms: the server's wall time.
        at_ages: for each age asked for, the first entry that is not older.
        sealed_entry: the entry whose number is `sealed`; "" for none.
        unsealed: the first entry behind that.
        set_back: the first and the last number that only the archive had; "" for none.
    """

    length: int
    n: int
    sealed: int
    size: int
    first: NumberedEntry | None
    last: NumberedEntry | None
    before: NumberedEntry | None
    after: NumberedEntry | None
    now_ms: int
    at_ages: tuple[NumberedEntry | None, ...]
    sealed_entry: str
    unsealed: NumberedEntry | None
    set_back: str


def look_at_partition(
    keys: Keys, partition: int, settled: str, samples: int, ages_ms: Sequence[int]
) -> ScriptCall[PartitionLook]:
    """Look at a partition at one moment.

    Args:
        settled: the entry whose neighbours are returned as `before` and `after`; "" for none.
        samples: how many nodes of the stream Redis samples to estimate its size.
        ages_ms: for each of these ages, the first entry that is not older is returned.
    """
    where = (keys.log(partition), keys.state(partition))
    return ScriptCall(_LOOK_AT_PARTITION, where, (settled, samples, *ages_ms), _read_look)


def _read_look(reply: Any) -> PartitionLook:
    length, n, sealed, size, first, last, before, after, *rest = reply
    now, at_ages, sealed_entry, unsealed, set_back = rest
    return PartitionLook(
        length=int(length),
        n=_read_counter(n),
        sealed=_read_counter(sealed),
        size=int(size),
        first=_read_entry(first),
        last=_read_entry(last),
        before=_read_entry(before),
        after=_read_entry(after),
        now_ms=int(now),
        at_ages=tuple(map(_read_entry, at_ages)),
        sealed_entry=sealed_entry.decode(),
        unsealed=_read_entry(unsealed),
        set_back=set_back.decode("ascii", "replace"),
    )


def _read_entry(reply: Sequence[bytes]) -> NumberedEntry | None:
    return NumberedEntry(reply[0].decode(), int(reply[1])) if reply else None


def _read_counter(raw: bytes) -> int:
    """Read a counter of the log's state; 0 if it is missing or not a number."""
    return int(raw) if raw.isdigit() else 0


class NumbersPage(NamedTuple):
    """The numbers of one page of a partition.

    Attributes:
        entry: where the page ends.
        n: the number there.
        read: how many entries it had.
        foreign: how many of them are not ours.
        breaks: pairs of numbers between which some are missing.
    """

    entry: str
    n: int
    read: int
    foreign: int
    breaks: tuple[tuple[int, int], ...]


def read_numbers(
    keys: Keys, partition: int, entry: str, n: int, count: int
) -> ScriptCall[NumbersPage]:
    """Read the numbers of `count` entries behind an entry, whose number is `n`."""
    return ScriptCall(_READ_NUMBERS, (keys.log(partition),), (entry, n, count), _read_audit)


def _read_audit(reply: Any) -> NumbersPage:
    entry, n, read, foreign, breaks = reply
    pairs = tuple(zip(map(int, breaks[::2]), map(int, breaks[1::2]), strict=True))
    return NumbersPage(entry.decode(), int(n), int(read), int(foreign), pairs)


class UnknownEntry(msgspec.Struct, frozen=True):
    """Nothing was written: the log has an entry that nobody knows to be in the archive (G7)."""


def seal(
    keys: Keys,
    partition: int,
    epoch: int,
    entry: str,
    n: int,
    hot_ms: int,
    *,
    known: str,
) -> ScriptCall[UnknownEntry | None]:
    """Note where the archive ends, and trim the sealed entries older than `hot_ms` (G5, G7).

    Returns `UnknownEntry` if the log has an entry before the archive's end that is not `known` to
    be in the archive.

    Args:
        epoch: the epoch of the lane `@archive`.
        entry: the archive's last entry.
        n: its number.
        hot_ms: how long a sealed entry stays in the log, milliseconds.
        known: the log's last entry up to which the archive certainly has everything.
    """
    where = (keys.lane(partition, ARCHIVE_LANE), keys.log(partition), keys.state(partition))
    args = (epoch, entry, n, hot_ms, known)
    return ScriptCall(_SEAL, where, args, partial(_read_seal, f"{where[0]}: epoch {epoch}"))


def _read_seal(lane: str, reply: Any) -> UnknownEntry | None:
    if reply < 0:
        return UnknownEntry()
    _read_written(lane, reply)
    return None


class SealedByOther(msgspec.Struct, frozen=True):
    """Nothing was written: another Redis archives into the same place."""


def renumber(
    archiver: OwnedLane,
    lanes: Sequence[str],
    *,
    known: str,
    end: tuple[str, int],
    back: tuple[str, int],
) -> ScriptCall[SealedByOther | None]:
    """Renumber the entries that the archive lacks, so that they follow the archive's end (G7).

    Args:
        archiver: the partition's lane `@archive`.
        lanes: the keys of its other lanes.
        known: the log's last entry that the archive has.
        end: entry and n of the archive's end; ``0-0`` and 0 for none.
        back: entry and n of the archive's last event before the repeated numbers; a lane that took
            some of these continues there.
    """
    keys, partition = archiver.keys, archiver.partition
    where = (archiver.key, keys.log(partition), keys.state(partition), *lanes)
    args = (archiver.epoch, known, *end, *back)
    return ScriptCall(_RENUMBER, where, args, partial(_read_renumber, archiver))


def _read_renumber(lane: OwnedLane, reply: Any) -> SealedByOther | None:
    if reply < 0:
        return SealedByOther()
    _read_written(lane, reply)
    return None


class CallWait(msgspec.Struct, frozen=True):
    """Says whether a call may be made.

    Attributes:
        seconds: the time after which to ask again; 0 if the call may be made now, and is counted.
        spent_today: whether the reason to wait is that the day's calls are used up.
    """

    seconds: float
    spent_today: bool = False


def spend(key: str, per_second: float, per_day: int) -> ScriptCall[CallWait]:
    """Count one call against a budget (`Keys.budget`, `Keys.spent`); a limit of 0 is no limit."""
    return ScriptCall(_SPEND, (key,), (f"{per_second:.9f}", per_day), _read_call_wait)


def _read_call_wait(reply: Any) -> CallWait:
    return CallWait(abs(int(reply)) / 1000, spent_today=int(reply) < 0)
