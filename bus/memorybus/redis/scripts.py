"""Typed wrappers of the Lua scripts in ``lua/``.

A `Call` is a value: it can be run alone or in a pipeline with others. A script the server has
forgotten (restart, failover) is loaded again and the call repeated: the server refused it before
it did anything.
"""

import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, TypeAlias

import msgspec
from redis import Redis
from redis.exceptions import NoScriptError, ResponseError

from memorybus.redis.keys import Keys

Arg: TypeAlias = str | bytes | int


class Script(msgspec.Struct, frozen=True):
    """A script's name, source and the SHA-1 by which the server knows it."""

    name: str
    source: str
    sha: str


def _load(name: str, *before: str) -> Script:
    """Read a script, behind the files that have to stand before it."""
    directory = resources.files("memorybus.redis").joinpath("lua")
    source = "".join(directory.joinpath(f"{one}.lua").read_text() for one in (*before, name))
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


APPEND = _load("append", "run", "silent")
REST = _load("rest", "silent")
FORGET = _load("forget", "silent")
ACQUIRE = _load("acquire", "run")
RENEW = _load("renew", "run")
RELEASE = _load("release")
BURY = _load("bury")
COMMIT = _load("commit", "run")
TRY = _load("try", "run")
PARK = _load("park", "run")
SETTLE = _load("settle", "run")
NOTE = _load("note")
CHANGE = _load("change")
STAND = _load("stand")
WANT = _load("want")
WARM = _load("warm")
LOOK = _load("look")
AUDIT = _load("audit")
SEAL = _load("seal")
RENUMBER = _load("renumber")
BORN = _load("born", "run")


class Call(msgspec.Struct, frozen=True):
    """One run of a script, not yet sent."""

    script: Script
    keys: Sequence[str]
    args: Sequence[Arg]


def run(redis: Redis, call: Call) -> Any:
    """Run one call.

    Raises:
        redis.RedisError: as the server or the connection says.
    """
    reply = run_many(redis, [call])[0]
    if isinstance(reply, Exception):
        raise reply
    return reply


def run_many(redis: Redis, calls: Sequence[Call]) -> list[Any]:
    """Run calls in one round trip; a call that failed gives its exception in its place.

    Raises:
        redis.ConnectionError: the connection broke; some calls may have been executed.
    """
    replies = _send(redis, calls)
    forgotten = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if forgotten:
        for script in {calls[i].script.name: calls[i].script for i in forgotten}.values():
            redis.script_load(script.source)
        for i, reply in zip(forgotten, _send(redis, [calls[i] for i in forgotten]), strict=True):
            replies[i] = reply
    return replies


def _send(redis: Redis, calls: Sequence[Call]) -> list[Any]:
    if len(calls) == 1:
        return [_send_one(redis, calls[0])]
    with redis.pipeline(transaction=False) as pipe:
        for call in calls:
            pipe.evalsha(call.script.sha, len(call.keys), *call.keys, *call.args)
        return list(pipe.execute(raise_on_error=False))


def _send_one(redis: Redis, call: Call) -> Any:
    try:
        return redis.evalsha(call.script.sha, len(call.keys), *call.keys, *call.args)
    except ResponseError as error:
        return error


class Outgoing(msgspec.Struct, frozen=True):
    """An event on its way into the log: the producer's sequence, event id, digest and body."""

    sequence: int
    id: bytes
    digest: bytes
    body: bytes


class Appended(msgspec.Struct, frozen=True):
    """What became of a batch: each event's n (negative if skipped), indexes of conflicts."""

    numbers: list[int]
    conflicts: list[int]


class Behind(msgspec.Struct, frozen=True):
    """Redis has less of this producer than it once took: its last sequence."""

    last: int


def append(
    keys: Keys,
    partition: int,
    producer: str,
    expected: int,
    events: Sequence[Outgoing],
    *,
    window_ms: int,
    max_ids: int,
    handed: int = 0,
) -> Call:
    """Append a batch to one partition, each event once (G2); see `appended`.

    An event up to the sequence `handed` may have been in the log before, and is marked so.
    """
    args: list[Arg] = [producer, expected, window_ms, max_ids, handed]
    for event in events:
        args += (event.sequence, event.id, event.digest, event.body)
    new, old = keys.seen(partition)
    log, state = keys.log(partition), keys.state(partition)
    return Call(APPEND, (log, state, keys.producers(partition), new, old), args)


def appended(reply: Any) -> Appended | Behind:
    """Read the reply of `append`."""
    if reply[0] == 0:
        return Behind(int(reply[1]))
    return Appended([int(n) for n in reply[1]], [int(i) for i in reply[2]])


class Acquired(msgspec.Struct, frozen=True):
    """A lane is ours: its new epoch and what Redis knows of its progress.

    Attributes:
        epoch: our fencing token.
        entry: the checkpoint.
        n: the checkpoint's dense number.
        done: what is done above it (see `memorybus_workers.lanes.window`).
        sent: the highest n that may have been handed to the provider before.
        deaths: owners in a row that died without advancing the checkpoint.
        head: the last dense number in the log.
    """

    epoch: int
    entry: str
    n: int
    done: bytes = b""
    sent: int = 0
    deaths: int = 0
    head: int = 0


def acquire(
    keys: Keys, partition: int, provider: str, worker: str, ms: int, floor: int = 0, held: str = ""
) -> Call:
    """Take a lane if its lease is free or `held`, with an epoch above `floor`; see `acquired`."""
    lease, lane = keys.lease(partition, provider), keys.lane(partition, provider)
    where = (lease, lane, keys.log(partition), keys.state(partition))
    return Call(ACQUIRE, where, (worker, ms, provider, floor, held))


def acquired(reply: Any) -> Acquired | None:
    """Read the reply of `acquire`; None if the lane is taken."""
    if reply is None:
        return None
    epoch, entry, n, done, *numbers = reply
    return Acquired(int(epoch), entry.decode(), int(n), done, *map(int, numbers))


def renew(lease: str, lane: str, epoch: int, worker: str, lease_ms: int) -> Call:
    """Prolong a lease; the reply is 1 if it is still ours."""
    return Call(RENEW, (lease, lane), (lease_ms, f"{epoch}:{worker}", epoch, worker))


def release(lease: str, lane: str, held: str) -> Call:
    """Give up a lease; the reply is 1 if it was ours."""
    return Call(RELEASE, (lease, lane), (held,))


def bury(keys: Keys, partition: int, provider: str, worker: str) -> Call:
    """Free a lane of a worker that is known to be dead; the reply is 1 if it was its own (G5)."""
    return Call(BURY, (keys.lease(partition, provider), keys.lane(partition, provider)), (worker,))


class Checkpoint(msgspec.Struct, frozen=True):
    """A lane's progress: all up to `entry` and `n`, what is done above, what was sent (or "")."""

    entry: str
    n: int
    done: bytes = b""
    sent: int | str = ""


def commit(
    keys: Keys, partition: int, provider: str, epoch: int, at: Checkpoint, *, entries_read: bool
) -> Call:
    """Advance a lane's checkpoint; the reply is 0 if `epoch` is not current (G5)."""
    args = (epoch, at.entry, at.n, provider, int(entries_read), at.done, at.sent)
    return Call(COMMIT, (keys.lane(partition, provider), keys.log(partition)), args)


def trying(keys: Keys, partition: int, provider: str, epoch: int, n: int, step: int) -> Call:
    """Note that a try of an event begins (1) or is over (-1).

    The reply is how many tries of it are not known to be over, or -1 if `epoch` is stale (G5).
    """
    return Call(TRY, (keys.lane(partition, provider),), (epoch, n, step))


def park(
    keys: Keys,
    partition: int,
    provider: str,
    epoch: int,
    records: Sequence[tuple[str, str, bytes]],
) -> Call:
    """Put events (entry, key, JSON record) aside; the reply is -1 if `epoch` is stale (G6)."""
    args: list[Arg] = [epoch]
    for entry, key, record in records:
        args += (entry, key, record)
    lane, parked = keys.lane(partition, provider), keys.parked(partition, provider)
    return Call(PARK, (lane, parked, keys.dead(partition, provider)), args)


def settle(
    keys: Keys,
    partition: int,
    provider: str,
    epoch: int,
    letter: tuple[str, str, str],
    *,
    amendment: bytes = b"",
    event: bytes = b"",
) -> Call:
    """Settle a dead letter (id, entry, order key), or amend it, and append `event` to the log.

    The reply is -1 if `epoch` is stale, 0 if the letter was gone, 1 if done, 2 if that freed its
    key (G5, G6). A letter that goes with an event counts as discarded.
    """
    return Call(
        SETTLE,
        (
            keys.lane(partition, provider),
            keys.parked(partition, provider),
            keys.dead(partition, provider),
            keys.amended(partition, provider),
            keys.log(partition),
            keys.state(partition),
        ),
        (epoch, *letter, amendment, event),
    )


def note(key: str, fields: Mapping[str, bytes]) -> Call:
    """Write fields of a hash, also when the server is out of memory."""
    return Call(NOTE, (key,), [part for field in fields.items() for part in field])


def want(keys: Keys, slot: str, request: bytes, ttl_ms: int) -> Call:
    """Ask for a recall; the reply is its generation."""
    return Call(WANT, (keys.want(slot),), (request, ttl_ms))


def warm(keys: Keys, slot: str, provider: str, generation: int, result: bytes, ttl_ms: int) -> Call:
    """Store a result; the reply is [1 if stored, newest generation wanted]."""
    args = (provider, generation, result, ttl_ms)
    return Call(WARM, (keys.want(slot), keys.warm(slot)), args)
