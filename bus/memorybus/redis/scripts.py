"""The Lua scripts of ``lua/``: each is declared by a typed function that has its name.

The function returns what a call sends, as the script's header names it, and how its reply is read;
its decorator names the shared files that the script needs. `run` sends one call, `run_many` sends
several in one round trip. A script that the server has forgotten (after a restart or a failover) is
loaded and called again, which is safe because the server refused the call before the script did
anything. redis-py's `register_script` would ask for a pipeline's scripts before each execution:
one more round trip.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import wraps
from importlib import resources
from typing import Any, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

import msgspec
from redis import Redis
from redis.exceptions import NoScriptError, ResponseError

from memorybus.errors import LeaseLost
from memorybus.redis.keys import Keys

Arg: TypeAlias = str | bytes | int
P = ParamSpec("P")
R = TypeVar("R")


class Script(msgspec.Struct, frozen=True):
    """A script's name, source, and the SHA-1 by which the server knows it."""

    name: str
    source: str
    sha: str


def _no_reply(_: Any) -> Any:
    """Ignore the reply of a script that returns nothing more."""


class ScriptRequest(NamedTuple, Generic[R]):
    """What one call sends, and how its reply is read."""

    keys: Sequence[str]  # its keys
    args: Sequence[Arg]  # its arguments
    read: Callable[[Any], R] = _no_reply  # turns the reply into what the call returns
    # the lane that only its owner may change: the script returns 0, and writes nothing, if the
    # epoch is not the lane's newest (G5)
    owned: "OwnedLane | None" = None


class ScriptCall(NamedTuple, Generic[R]):
    """One call of a script, not yet sent."""

    script: Script
    request: ScriptRequest[R]

    @property
    def command(self) -> tuple[Any, ...]:
        keys = self.request.keys
        return (self.script.sha, len(keys), *keys, *self.request.args)

    def read(self, reply: Any) -> R:
        if self.request.owned is not None and reply == 0:
            why = f"{self.request.owned} is not the lane's newest: it has another owner"
            raise LeaseLost(why, fenced=True)
        return self.request.read(reply)


def script(*shared: str) -> Callable[[Callable[P, ScriptRequest[R]]], Callable[P, ScriptCall[R]]]:
    """Declare the script of the decorated function's name, behind files of ``lua/shared/``."""

    def declare(request: Callable[P, ScriptRequest[R]]) -> Callable[P, ScriptCall[R]]:
        declared = _load(request.__name__, shared)

        @wraps(request)
        def call(*args: P.args, **kwargs: P.kwargs) -> ScriptCall[R]:
            return ScriptCall(declared, request(*args, **kwargs))

        return call

    return declare


def _load(name: str, shared: Sequence[str]) -> Script:
    directory = resources.files("memorybus.redis").joinpath("lua")
    files = [*(f"shared/{file}.lua" for file in shared), f"{name}.lua"]
    source = "".join(directory.joinpath(file).read_text("utf-8") for file in files)
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


def run(redis: Redis, call: ScriptCall[R]) -> R:
    reply = run_many(redis, [call])[0]
    if isinstance(reply, Exception):
        raise reply
    return reply


def run_many(redis: Redis, calls: Sequence[ScriptCall[R]]) -> list[R | Exception]:
    """Run calls in one round trip; a call that failed gives its exception in its place."""
    replies = _send(redis, calls)
    unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        for source in {calls[i].script.source for i in unknown}:
            redis.script_load(source)
        for i, reply in zip(unknown, _send(redis, [calls[i] for i in unknown]), strict=True):
            replies[i] = reply
    return [
        reply if isinstance(reply, Exception) else call.read(reply)
        for call, reply in zip(calls, replies, strict=True)
    ]


def _send(redis: Redis, calls: Sequence[ScriptCall[Any]]) -> list[Any]:
    if len(calls) == 1:
        try:
            return [redis.evalsha(*calls[0].command)]
        except ResponseError as error:
            return [error]
    with redis.pipeline(transaction=False) as pipe:
        for call in calls:
            pipe.evalsha(*call.command)
        return list(pipe.execute(raise_on_error=False))


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


@script("server_time", "server_restart", "known_producers", "log_entries")
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
) -> ScriptRequest[Appended | TailLost]:
    """Append a batch to one partition, each event once (G2)."""
    args: list[Arg] = [producer, expected, window_ms, max_ids, possibly_delivered]
    for event in events:
        args += (event.sequence, event.id, event.digest, event.body)
    log, state = keys.log(partition), keys.state(partition)
    where = (log, state, keys.producers(partition), *keys.seen(partition))
    return ScriptRequest(where, args, _read_append)


def _read_append(reply: Any) -> Appended | TailLost:
    if reply[0] == 0:
        return TailLost(int(reply[1]))
    return Appended([int(index) for index in reply[1]])


@script("server_time", "known_producers")
def note_idle_producer(
    keys: Keys, partition: int, producer: str, sequence: int, window_ms: int
) -> ScriptRequest[None]:
    """Note that a producer has deleted every event up to a sequence, for good."""
    where = (keys.producers(partition), keys.state(partition))
    return ScriptRequest(where, (producer, sequence, window_ms))


@script("known_producers")
def forget_producer(keys: Keys, partition: int, producer: str) -> ScriptRequest[None]:
    return ScriptRequest((keys.producers(partition),), (producer,))


# -- lanes ----------------------------------------------------------------------------------------


class OwnedLane(msgspec.Struct, frozen=True):
    """A lane, its owner, and what Redis knew of its progress when the owner took it."""

    keys: Keys  # the keys of the log
    partition: int
    provider: str
    epoch: int  # the owner's fencing token
    worker: str = ""  # the owner; "" where it does not matter
    entry: str = "0-0"  # the checkpoint
    n: int = 0  # the checkpoint's dense number
    done: bytes = b""  # which later events are done already (see `memorybus.registry.lanes`)
    # by n the deaths of owners at which an event was being called, as JSON; they may be done by now
    suspects: bytes = b""
    sent: int = 0  # the highest n that may have been given to the provider before
    deaths: int = 0  # how many owners in a row died without advancing the checkpoint
    head: int = 0  # the last dense number in the log

    @property
    def key(self) -> str:
        return self.keys.lane(self.partition, self.provider)

    @property
    def lease(self) -> str:
        return self.keys.lease(self.partition, self.provider)

    @property
    def token(self) -> str:
        """What the lease holds while it is the owner's."""
        return f"{self.epoch}:{self.worker}"

    @property
    def parked(self) -> str:
        return self.keys.parked(self.partition, self.provider)

    @property
    def dead(self) -> str:
        return self.keys.dead(self.partition, self.provider)

    def __str__(self) -> str:
        return f"{self.provider}, partition {self.partition}: epoch {self.epoch}"


@script("server_time", "server_restart", "lane_death")
def acquire(
    keys: Keys, partition: int, provider: str, worker: str, ms: int, floor: int = 0, token: str = ""
) -> ScriptRequest[OwnedLane | None]:
    """Take a lane if its lease is free or `token`, with an epoch above `floor`, else None."""
    lease, lane = keys.lease(partition, provider), keys.lane(partition, provider)
    where = (lease, lane, keys.log(partition), keys.state(partition))

    def read(reply: Any) -> OwnedLane | None:
        if reply is None:
            return None
        epoch, entry, n, done, suspects, *numbers = reply
        progress = (entry.decode(), int(n), done, suspects, *map(int, numbers))
        return OwnedLane(keys, partition, provider, int(epoch), worker, *progress)

    return ScriptRequest(where, (worker, ms, provider, floor, token), read)


@script("server_restart")
def renew(renewals: Sequence[tuple[OwnedLane, int]]) -> ScriptRequest[list[bool | Exception]]:
    """Let leases of one slot last so many milliseconds; return if each is ours, or its error."""
    keys = [key for lane, _ in renewals for key in (lane.lease, lane.key)]
    args = [arg for lane, ms in renewals for arg in (ms, lane.epoch, lane.worker)]
    return ScriptRequest(keys, args, _read_renewals)


def _read_renewals(replies: Any) -> list[bool | Exception]:
    return [reply if isinstance(reply, Exception) else bool(reply) for reply in replies]


@script()
def release(lane: OwnedLane) -> ScriptRequest[None]:
    return ScriptRequest((lane.lease, lane.key), (lane.token,))


@script("lane_death")
def reclaim(keys: Keys, partition: int, provider: str, worker: str) -> ScriptRequest[bool]:
    """Free the lane of a worker that is known to be dead; return whether the worker had it (G5)."""
    where = (keys.lease(partition, provider), keys.lane(partition, provider))
    return ScriptRequest(where, (worker,), bool)


@script("server_time", "server_restart")
def note_new_lane(keys: Keys, partition: int, provider: str) -> ScriptRequest[None]:
    """Note that a lane is new, unless Redis knows it already (G4)."""
    return ScriptRequest((keys.lane(partition, provider),), ())


class Checkpoint(msgspec.Struct, frozen=True):
    """A lane's progress."""

    entry: str  # everything up to this entry is done
    n: int  # its dense number
    done: bytes = b""  # which later events are done already
    # the highest n that may have been given to the provider; "" to leave it as it is
    sent: int | str = ""


@script("server_time", "server_restart")
def commit(lane: OwnedLane, at: Checkpoint) -> ScriptRequest[None]:
    where = (lane.key, lane.keys.log(lane.partition))
    args = (lane.epoch, at.entry, at.n, lane.provider, at.done, at.sent)
    return ScriptRequest(where, args, owned=lane)


@script("server_restart")
def note_tries(lane: OwnedLane, tries: bytes, suspects: bytes) -> ScriptRequest[None]:
    """Note what a lane whose owners died calls for next, and its suspects (G6), as JSON."""
    return ScriptRequest((lane.key,), (lane.epoch, tries, suspects), owned=lane)


@script("server_restart", "log_entries")
def park(lane: OwnedLane, records: Sequence[tuple[str, str, bytes]]) -> ScriptRequest[None]:
    """Park events (entry, key, JSON record); those that were parked before are left out (G6)."""
    args = [arg for record in records for arg in record]
    return ScriptRequest((lane.key, lane.parked, lane.dead), (lane.epoch, *args), owned=lane)


class Settled(Enum):
    """What became of a dead letter that was settled or amended."""

    GONE = 1
    """It did not exist any more."""

    DONE = 2
    KEY_FREED = 3
    """It was the last one of its key; the key is not parked any more."""


class LetterAddress(msgspec.Struct, frozen=True):
    """Where a dead letter is: its id among them, its event's entry in the log, its order key."""

    id: str
    entry: str
    key: str


@script("server_restart")
def settle(
    lane: OwnedLane, letter: LetterAddress, *, amendment: bytes = b"", event: bytes = b""
) -> ScriptRequest[Settled]:
    """Settle a dead letter, or amend it, and append `event` to the log (G6)."""
    keys, partition = lane.keys, lane.partition
    amended = keys.amended(partition, lane.provider)
    where = (lane.key, lane.parked, lane.dead, amended, keys.log(partition), keys.state(partition))
    args = (lane.epoch, letter.id, letter.entry, letter.key, amendment, event)
    return ScriptRequest(where, args, Settled, lane)


# -- hashes and locks -----------------------------------------------------------------------------


@script()
def write_fields(key: str, fields: Mapping[str, bytes]) -> ScriptRequest[None]:
    """Write fields of a hash, also when the server is out of memory."""
    return ScriptRequest((key,), [part for field in fields.items() for part in field])


class LockLost(msgspec.Struct, frozen=True):
    """Nothing was changed: the lock is not ours any more."""


@script()
def change_field(
    key: str,
    field: str | bytes,
    to: bytes,
    *,
    seen: bytes | None = None,
    lock: tuple[str, bytes] | None = None,
) -> ScriptRequest[bytes | LockLost | None]:
    """Check and change a field of a hash in one step; return its value from before.

    Args:
        seen: the field is changed only if it has this value (empty: only if it does not exist);
            None to change it whatever it has.
        lock: nothing is changed unless this key, in the hash's slot, still has this value (G8);
            None if no lock is needed.
    """
    fence, token = lock or ("", b"")
    where = (key, fence) if lock else (key,)
    return ScriptRequest(
        where, (field, to, token, *(() if seen is None else (seen,))), _read_change
    )


def _read_change(reply: Any) -> bytes | LockLost | None:
    if isinstance(reply, int):
        return LockLost()
    return None if reply is None else bytes(reply)


@script()
def prolong_lock(key: str, token: bytes, life_ms: int) -> ScriptRequest[bool]:
    """Let a lock expire in `life_ms` (0: delete it now); return whether it was ours."""
    return ScriptRequest((key,), (token, life_ms), bool)


# -- recall ---------------------------------------------------------------------------------------


@script()
def request_recall(keys: Keys, slot: str, request: bytes, ttl_ms: int) -> ScriptRequest[int]:
    """Ask for a recall; return its generation."""
    return ScriptRequest((keys.want(slot),), (request, ttl_ms), int)


@script()
def store_warm(
    keys: Keys, slot: str, provider: str, generation: int, result: bytes, ttl_ms: int
) -> ScriptRequest[None]:
    return ScriptRequest(keys.slot(slot), (provider, generation, result, ttl_ms))


# -- the archive, and budgets ---------------------------------------------------------------------


class UnknownEntry(msgspec.Struct, frozen=True):
    """Nothing was written: the log has an entry that nobody knows to be in the archive (G7)."""


@script("server_time", "server_restart", "log_entries")
def seal(
    archiver: OwnedLane, entry: str, n: int, hot_ms: int, *, known: str
) -> ScriptRequest[UnknownEntry | None]:
    """Note where the archive ends, and trim the sealed entries older than `hot_ms` (G5, G7).

    `UnknownEntry`: the log has an entry before that end which is not `known` to be in the archive.
    """
    keys, partition = archiver.keys, archiver.partition
    where = (archiver.key, keys.log(partition), keys.state(partition))
    args = (archiver.epoch, entry, n, hot_ms, known)
    return ScriptRequest(where, args, lambda reply: UnknownEntry() if reply < 0 else None, archiver)


class SealedByOther(msgspec.Struct, frozen=True):
    """Nothing was written: another Redis archives into the same place."""


@script("server_restart", "log_entries")
def renumber(
    archiver: OwnedLane,
    lanes: Sequence[str],
    *,
    known: str,
    end: tuple[str, int],
    back: tuple[str, int],
) -> ScriptRequest[SealedByOther | None]:
    """Renumber the entries that the archive lacks, so that they follow the archive's end (G7).

    Args:
        end: entry and n of the archive's end; ``0-0`` and 0 for none.
        back: entry and n of the archive's last event before the repeated numbers; a lane that took
            some of these continues there.
    """
    keys, partition = archiver.keys, archiver.partition
    where = (archiver.key, keys.log(partition), keys.state(partition), *lanes)
    args = (archiver.epoch, known, *end, *back)
    return ScriptRequest(
        where, args, lambda reply: SealedByOther() if reply < 0 else None, archiver
    )


class CallWait(msgspec.Struct, frozen=True):
    """Says whether a call may be made."""

    # the time after which to ask again; 0 if the call may be made now, and is counted
    seconds: float
    spent_today: bool = False  # whether the reason to wait is that the day's calls are used up


@script()
def spend(key: str, per_second: float, per_day: int) -> ScriptRequest[CallWait]:
    """Count one call against a budget (`Keys.budget`, `Keys.spent`); a limit of 0 is no limit."""
    return ScriptRequest((key,), (f"{per_second:.9f}", per_day), _read_call_wait)


def _read_call_wait(reply: Any) -> CallWait:
    return CallWait(abs(int(reply)) / 1000, spent_today=int(reply) < 0)


class ModelAccount(NamedTuple):
    """The two hashes of what the model was used for (`Keys.model`), and a person's field there."""

    keys: tuple[str, str]
    person: str


class TokenReservation(NamedTuple):
    """What was reserved for a call of the model, or which limit (1 to 6) refused it."""

    refused: int
    hour: int = 0
    month: int = 0


@script()
def reserve_tokens(
    account: ModelAccount, tokens: int, limits: Sequence[int]
) -> ScriptRequest[TokenReservation]:
    """Reserve a call of the model and its tokens; a limit of 0 is no limit."""
    args: tuple[Arg, ...] = (account.person, tokens, *limits)
    return ScriptRequest(account.keys, args, lambda reply: TokenReservation(*map(int, reply)))


@script()
def settle_tokens(
    account: ModelAccount,
    reserved: TokenReservation,
    more: int,
    *,
    unreadable: bool = False,
    why: str = "",
) -> ScriptRequest[None]:
    """Correct the tokens of a call, and note how it went."""
    args = (account.person, reserved.hour, reserved.month, more, int(unreadable), why)
    return ScriptRequest(account.keys, args)
