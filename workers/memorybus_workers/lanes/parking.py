"""Parks keys: an event that a provider refuses finally waits, with later ones of its key (G6)."""

import traceback
from collections.abc import Callable, Collection, Sequence
from typing import Any

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
from memorybus.redis.scripts import LetterAddress, OwnedLane, Settled
from memorybus.text.redact import mask_trace_tail, one_line
from redis import Redis

from memorybus_workers.calls.failing_events import FailingEvent


class Failure(msgspec.Struct, frozen=True):
    """Why an event is parked."""

    reason: str  # the reason in one line, for people
    # how often it was tried; 0 if it only waits behind the first letter of its key
    attempts: int = 0
    trace: str = ""  # the traceback, without values of variables; its end is kept
    first_at: int = 0  # when it failed first, milliseconds since the Unix epoch
    last_at: int = 0  # when it failed last


def failure_of(
    why: str, earlier: FailingEvent | None, now: int, error: BaseException | None
) -> Failure:
    trace = "".join(traceback.format_exception(error)) if error else ""
    if earlier is None:
        return Failure(why, 1, trace, now, now)
    return Failure(why, earlier.tries, trace, earlier.first_at, earlier.last_at)


NoteTry = Callable[[], Failure | None]
"""Notes that a call is about to begin, or returns why it may not begin."""


BEHIND = Failure("waits behind the key's dead letter")
Refused = Callable[[LoggedEvent, str], None]
"""A function that is called for each parked event, with the reason."""


def _ignore_refusal(event: LoggedEvent, why: str) -> None:
    """Do nothing: nobody waits for the outcome."""


class ParkedKeys:
    """The parked keys of one lane, as its owner knows them. Belongs to one thread."""

    def __init__(
        self,
        redis: Redis,
        lane: OwnedLane,
        refused: Refused = _ignore_refusal,
        secrets: Collection[str] = frozenset(),
    ) -> None:
        self._redis = redis
        self._lane = lane
        self.worker = lane.worker
        self._refused = refused
        self._secrets = secrets
        found: Any = redis.hkeys(lane.parked)
        try:
            self.keys = {key.decode("utf-8", "surrogatepass") for key in found}
        except UnicodeDecodeError as error:
            raise foreign_key_error(lane.parked) from error

    def put_aside(self, events: Sequence[LoggedEvent], failure: Failure) -> None:
        """Park events, before the lane's checkpoint passes them; a repeated call is safe.

        A `DeadLetterResolved` never waits behind a dead letter, because no provider has a hook for
        it.
        """
        failure = self.mask_and_bound(failure)
        records = [
            (event.position.entry, event.envelope.key, self._record(event, failure))
            for event in events
            if not isinstance(event.envelope.event, DeadLetterResolved)
        ]
        if records:
            scripts.run(self._redis, scripts.park(self._lane, records))
            self.keys.update(key for _, key, _ in records)
        for event in events:
            self._refused(event, failure.reason)

    def mask_and_bound(self, failure: Failure) -> Failure:
        """Return a failure as it may be stored and sent: masked and bounded."""
        reason = one_line(failure.reason, self._secrets)
        trace = mask_trace_tail(failure.trace, self._secrets)
        return msgspec.structs.replace(failure, reason=reason, trace=trace)

    def settle(self, stored: StoredLetter, event: bytes = b"") -> None:
        """Remove a dead letter that was applied, or discarded: `event` records that in the log."""
        call = scripts.settle(self._lane, _address_of(stored), event=event)
        if scripts.run(self._redis, call) is Settled.KEY_FREED:
            self.keys.discard(stored.letter.key)

    def amend(self, stored: StoredLetter, amendment: Amendment, event: bytes = b"") -> None:
        body = msgspec.json.encode(amendment)
        scripts.run(
            self._redis,
            scripts.settle(self._lane, _address_of(stored), amendment=body, event=event),
        )

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
