"""Parked keys: what a provider refuses for good waits, with the later events of its key (G6)."""

import traceback
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec
from memorybus.dead_letters.records import (
    NAME_CHARS,
    Amendment,
    DeadLetter,
    StoredLetter,
    bound_scope,
)
from memorybus.events import DeadLetterResolved
from memorybus.log.entry import LoggedEvent
from memorybus.redis import scripts
from memorybus.redis.connect import foreign_key_error
from memorybus.redis.owned_lane import OwnedLane
from memorybus.redis.scripts import LetterAddress, Settled, Stale
from memorybus.text.redact import mask_trace_tail, one_line
from redis import Redis

from memorybus_workers.calls.troubles import Trouble
from memorybus_workers.lanes.leases import WriteFenced


class Failure(msgspec.Struct, frozen=True):
    """Why an event is put aside.

    Attributes:
        reason: in one line, for people.
        attempts: how often it was tried; 0 if it only waits behind its key's first.
        trace: the traceback, without values of variables; its end is kept.
        first_at: when it failed first, milliseconds since the Unix epoch.
        last_at: when it failed last.
    """

    reason: str
    attempts: int = 0
    trace: str = ""
    first_at: int = 0
    last_at: int = 0


def failure_of(why: str, trouble: Trouble | None, now: int, error: BaseException | None) -> Failure:
    """Return why an event is put aside.

    Args:
        why: in one line.
        trouble: what is known of it, None if it has failed now only.
        now: milliseconds since the Unix epoch.
        error: what was raised, if anything was.
    """
    trace = "".join(traceback.format_exception(error)) if error else ""
    if trouble is None:
        return Failure(why, 1, trace, now, now)
    return Failure(why, trouble.tries, trace, trouble.first_at, trouble.last_at)


_R = TypeVar("_R")

NoteTry = Callable[[], Failure | None]
"""Notes that a call is about to begin, or returns why it may not."""


BEHIND = Failure("waits behind the key's dead letter")

Refused = Callable[[LoggedEvent, str], None]
"""Is called for each event that is put aside, with the reason."""


def _ignore_refusal(event: LoggedEvent, why: str) -> None:
    """Ignore it: nobody waits for it."""


class ParkedKeys:
    """The parked keys of one lane, as its owner knows them. Belongs to one thread.

    Attributes:
        keys: the order keys that wait.
    """

    def __init__(
        self,
        redis: Redis,
        lane: OwnedLane,
        worker: str = "",
        refused: Refused = _ignore_refusal,
        secrets: Collection[str] = frozenset(),
    ) -> None:
        """Read which keys wait.

        Raises:
            redis.RedisError: Redis is away.
            ForeignKey: the hash is not ours.
        """
        self._redis = redis
        self._lane = lane
        self.worker = worker
        self._refused = refused
        self._secrets = secrets
        found: Any = redis.hkeys(lane.parked)
        try:
            self.keys = {key.decode("utf-8", "surrogatepass") for key in found}
        except UnicodeDecodeError as error:
            raise foreign_key_error(lane.parked) from error

    def put_aside(self, events: Sequence[LoggedEvent], failure: Failure) -> None:
        """Put events aside, before the lane's checkpoint passes them; repeating it is safe.

        A record of what became of a dead letter never waits behind one: no provider has a hook
        for it.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        failure = self.mask_and_bound(failure)
        records = [
            (event.position.entry, event.envelope.key, self._record(event, failure))
            for event in events
            if not isinstance(event.envelope.event, DeadLetterResolved)
        ]
        if records:
            self._run(scripts.park(self._lane, records))
            self.keys.update(key for _, key, _ in records)
        for event in events:
            self._refused(event, failure.reason)

    def mask_and_bound(self, failure: Failure) -> Failure:
        """Return a failure as records and replies may hold it: masked and bounded."""
        reason = one_line(failure.reason, self._secrets)
        trace = mask_trace_tail(failure.trace, self._secrets)
        return msgspec.structs.replace(failure, reason=reason, trace=trace)

    def settle(self, stored: StoredLetter, event: bytes = b"") -> None:
        """Remove a dead letter that is applied, or discarded, which `event` records in the log.

        The last letter of a key frees the key. A second call changes nothing.

        Args:
            stored: the letter.
            event: the envelope of a `DeadLetterResolved`, if it is discarded.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        call = scripts.settle(self._lane, _address_of(stored), event=event)
        if self._run(call) is Settled.KEY_FREED:
            self.keys.discard(stored.letter.key)

    def amend(self, stored: StoredLetter, amendment: Amendment, event: bytes = b"") -> None:
        """Note what became of a dead letter that goes on waiting.

        Args:
            stored: the letter.
            amendment: all that is known of it now.
            event: the envelope of a `DeadLetterResolved`, if it is edited.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        body = msgspec.json.encode(amendment)
        self._run(scripts.settle(self._lane, _address_of(stored), amendment=body, event=event))

    def _run(self, call: scripts.ScriptCall[_R | Stale]) -> _R:
        reply = scripts.run(self._redis, call)
        if isinstance(reply, Stale):
            raise WriteFenced(str(self._lane))
        return reply

    def _record(self, event: LoggedEvent, failure: Failure) -> bytes:
        envelope, position = event.envelope, event.position
        return msgspec.json.encode(
            DeadLetter(
                event_id=envelope.id,
                entry=position.entry,
                n=position.n,
                key=envelope.key,
                type=type(envelope.event).__name__,
                reason=failure.reason,
                attempts=failure.attempts,
                scope=bound_scope(envelope.scope),
                session=envelope.session.id[:NAME_CHARS],
                at=envelope.at,
                first_at=failure.first_at,
                last_at=failure.last_at,
                trace=failure.trace,
                worker=self.worker,
            )
        )


def _address_of(stored: StoredLetter) -> LetterAddress:
    return LetterAddress(stored.id, stored.letter.entry, stored.letter.key)
