"""Fills the log with turns of many sessions, straight through `append.lua`.

The log holds afterwards what it holds when buses have published: the same envelopes, event ids
against duplicates, dense numbers. Spools and flushers are left out, since what is measured is the
other side; they would take several times as long for a million events.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import cycle, repeat

import msgspec
from memorybus.events import Envelope, Scope, SessionRef, TurnCompleted
from memorybus.ids import digest, new_id
from memorybus.redis import scripts
from memorybus.redis.keys import partition_of, session_key
from memorybus.redis.scripts import Appended, OutgoingEvent, TailLost
from memorybus.wire.codec import Encoder
from stage import Stage
from texts import turns

_TEXTS = 1_000
"""Different texts; they come round again with other ordinals and ids."""

_BLOCK = 500
"""Events of one partition in one append."""

_AT_ONCE = 8_000
"""Events in one round trip."""

_WINDOW_MS = 43_200_000


def spread(partitions: int, count: int) -> list[str]:
    """Return `count` root sessions, spread over the partitions as evenly as can be."""
    rows = -(-count // partitions)
    by_partition: dict[int, list[str]] = defaultdict(list)
    names = (f"key-{number:05d}" for number in range(1_000 * count))
    while len(by_partition) < partitions or min(map(len, by_partition.values())) < rows:
        name = next(names)
        by_partition[partition_of(session_key(_scope(name), name), partitions)].append(name)
    return [by_partition[p][row] for row in range(rows) for p in range(partitions)][:count]


def _scope(session: str) -> Scope:
    return Scope(user=f"user-of-{session}")


class Filler:
    """Appends turns of some sessions, one session after the other, round and round."""

    def __init__(
        self,
        stage: Stage,
        sessions: Sequence[str],
        scale: float = 1.0,
        texts: int = _TEXTS,
        traces: Iterable[str] = repeat(""),
    ) -> None:
        """Prepare the texts: so many, of 1.4 KB encoded, or of `scale` times that.

        Each event gets the next of the `traces` into its envelope.
        """
        self._stage = stage
        self._settings = stage.settings
        self._encoder = Encoder(stage.settings.compress_min_bytes)
        self._events = cycle([_event(turn) for turn in turns(texts, scale=scale)])
        self._traces = iter(traces)
        self.turn_to(sessions)
        self._producer = new_id()
        self._sequence = 0

    def turn_to(self, sessions: Sequence[str]) -> None:
        """Go on with other sessions."""
        self._sessions = cycle([SessionRef(id=name, root=name) for name in sessions])

    def fill(self, count: int) -> None:
        """Append so many.

        Raises:
            RuntimeError: Redis did not take them all.
        """
        for first in range(0, count, _AT_ONCE):
            self._append(min(_AT_ONCE, count - first))

    def _append(self, count: int) -> None:
        by_partition: dict[int, list[OutgoingEvent]] = defaultdict(list)
        for _ in range(count):
            partition, event = self._next()
            by_partition[partition].append(event)
        calls = [
            self._call(partition, events[i : i + _BLOCK])
            for partition, events in by_partition.items()
            for i in range(0, len(events), _BLOCK)
        ]
        _check(scripts.run_many(self._stage.redis, calls))

    def _next(self) -> tuple[int, OutgoingEvent]:
        session = next(self._sessions)
        scope = _scope(session.id)
        key = session_key(scope, session.root)
        self._sequence += 1
        event = msgspec.structs.replace(next(self._events), ordinal=self._sequence)
        event_id = new_id()
        envelope = Envelope(
            id=event_id,
            key=key,
            scope=scope,
            session=session,
            at=1_700_000_000_000,
            trace=next(self._traces),
            event=event,
        )
        body = self._encoder.pack(self._encoder.envelope(envelope))
        outgoing = OutgoingEvent(self._sequence, bytes.fromhex(event_id), digest(body), body)
        return partition_of(key, self._settings.partitions), outgoing

    def _call(
        self, partition: int, events: Sequence[OutgoingEvent]
    ) -> scripts.ScriptCall[Appended | TailLost]:
        return scripts.append(
            self._stage.keys,
            partition,
            self._producer,
            0,
            events,
            window_ms=_WINDOW_MS,
            max_ids=self._settings.dedupe_max_ids,
        )


def _event(turn: object) -> TurnCompleted:
    fields = msgspec.structs.asdict(turn)  # type: ignore[type-var]
    del fields["session"]
    return TurnCompleted(**fields)


def _check(replies: Sequence[object]) -> None:
    for reply in replies:
        if not isinstance(reply, Appended):
            raise RuntimeError(f"Redis took no events: {reply}")  # noqa: TRY004
