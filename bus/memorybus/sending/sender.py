"""The sender: moves one spool's rows into the log in order, and resends what Redis lost.

Redis remembers, by partition, the last sequence that it took from each producer. After every
connection the sender asks for it: rows up to there are in the log, later ones are sent (G1, G2,
G3). A partition that cannot take its rows (a foreign key has its name) lags alone; the others go
on.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, Self

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ForeignKey, LogUnavailable
from memorybus.log.producers import (
    check_unused,
    forget_producer,
    log_loss,
    may_be_forgotten,
    note_rest,
    read_taken_sequences,
)
from memorybus.log.replication import Replication
from memorybus.redis import scripts
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Appended, OutgoingEvent, ScriptCall, TailLost
from memorybus.sending.counters import SendCounts
from memorybus.spool.database import Row
from memorybus.spool.outbox import Spool
from memorybus.testing import CrashPoint, no_crash
from memorybus.tracing.spans import Tracing
from memorybus.wire.codec import Encoder, trace_of

_log = logging.getLogger("memorybus")

BATCH = 1_000
"""Rows read and sent at once."""

BATCH_BYTES = 4 << 20
"""Bytes of rows sent at once."""


Outcome = Literal["sent", "behind", "refused", "failed"]
"""What became of a partition's rows.

``sent``: Redis took them; ``behind``: it has lost its tail; ``refused``: the key is not ours;
``failed``: the server cannot take them.
"""


class SendProgress(msgspec.Struct, frozen=True):
    """How far a spool is sent: up to `cursor`, unless a partition lags behind it.

    Attributes:
        cursor: every row up to this sequence is in the log, except those of lagging partitions.
        whole: every row up to this sequence is in the log, whatever its partition.
        lagging: whether a partition lags.
    """

    cursor: int
    whole: int
    lagging: bool

    @classmethod
    def of(cls, cursor: int, lagging: Mapping[int, int]) -> Self:
        """Return the progress that a cursor and the places of lagging partitions make."""
        return cls(cursor, min([cursor, *lagging.values()]), bool(lagging))


class Sender:
    """Sends one spool into the log. Belongs to one thread.

    Attributes:
        progress: one value, which other threads may read.
        replication: whether what was sent would outlive the server that took it.
        counts: see `SendCounts`.
    """

    def __init__(
        self,
        spool: Spool,
        redis: Redis,
        settings: Settings,
        crash: CrashPoint = no_crash,
        counts: SendCounts | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """Send nothing yet; `resync` comes first."""
        self.spool = spool
        self.progress = SendProgress.of(0, {})
        self.counts = counts or SendCounts()
        self._redis = redis
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self.replication = Replication(redis, self._keys, settings.partitions, spool.producer)
        self._encoder = Encoder(settings.compress_min_bytes)
        self._tracing = Tracing(settings.namespace)
        self._taken: dict[int, int] = {}
        self._lagging: dict[int, int] = {}
        self._resting: set[int] = set()
        self._clock = clock
        self._crash = crash
        self._failure = ""

    @property
    def cursor(self) -> int:
        """See `SendProgress.cursor`."""
        return self.progress.cursor

    @property
    def lagging(self) -> bool:
        """See `SendProgress.lagging`."""
        return self.progress.lagging

    def _moved(self, cursor: int) -> None:
        self.progress = SendProgress.of(cursor, self._lagging)

    def resync(self) -> None:
        """Ask Redis what it has of this producer, and start over from there.

        Raises:
            LogUnavailable: no answer.
            SpoolCorrupt: the spool lost rows that Redis has, and gave their sequences to others.
        """
        self._taken = self._ask_taken()
        check_unused(self.spool, self._taken)
        self._lagging, self._resting = {}, set()
        self._moved(0)
        self._report_loss(self._taken)

    def confirm(self) -> None:
        """Compare what Redis has with what it took; what is missing will be sent again.

        Raises:
            LogUnavailable: no answer.
        """
        for partition, last in self._ask_taken().items():
            if last < self._taken.get(partition, 0):
                self._rewind(partition, last)
        self._moved(self.cursor)

    def delete_upto(self, sequence: int) -> None:
        """Delete rows that Redis has had long enough, if it still has them.

        Rows that a replica lacks, which may take over, stay too, while the spool is not half full.

        Raises:
            LogUnavailable: no answer.
        """
        full = self.spool.size > self._settings.spool_max_bytes // 2
        kept = full or self.replication.is_replicated()
        self.confirm()  # last: a Redis that lost its tail is replicated too
        if kept:
            upto = min(sequence, self.progress.whole)
            self.spool.delete_upto(upto)
            self._rest(upto)

    def _rest(self, upto: int) -> None:
        """Let Redis forget this producer in partitions whose rows are all deleted here (G10)."""
        lasts = {p: n for p, n in self._taken.items() if n <= upto and n and p not in self._resting}
        if lasts:
            window = self._settings.dedupe_window
            with self._answering("rest"):
                note_rest(self._redis, self._keys, lasts, self.spool.producer, window)
            self._resting |= lasts.keys()

    def forget_producer(self) -> None:
        """Remove this producer from Redis: its spool is empty and will be discarded."""
        with self._answering("producers"):
            forget_producer(self._redis, self._keys, self._settings.partitions, self.spool.producer)

    def send(self) -> int:
        """Send the next rows; return how many were read (0: all is sent).

        Raises:
            LogUnavailable: Redis is away or cannot serve; nothing is lost, call `resync` first.
            SpoolCorrupt: the spool is damaged.
        """
        last = self.spool.last
        rows = self.spool.rows_after(self.cursor, BATCH, BATCH_BYTES)
        if not rows:
            self._moved(max(self.cursor, last))  # sequences of another opening have no rows
        else:
            self._send_rows([row for row in rows if row[1] not in self._lagging])
            self._moved(rows[-1][0])
        return len(rows)

    def catch_up(self) -> int:
        """Send the rows of lagging partitions again; return how many partitions still lag.

        Raises:
            LogUnavailable: Redis is away or cannot serve.
        """
        for partition in list(self._lagging):
            while self._catch_up_some(partition):
                pass
        self._moved(self.cursor)
        return len(self._lagging)

    def _catch_up_some(self, partition: int) -> bool:
        rows = self.spool.rows_after(self._lagging[partition], BATCH, BATCH_BYTES, partition)
        rows = [row for row in rows if row[0] <= self.cursor]
        if not rows:
            del self._lagging[partition]
            return False
        outcome = self._send_rows(rows).get(partition, "sent")
        if outcome == "sent":
            self._lagging[partition] = rows[-1][0]
        return outcome != "refused"

    # -- one round trip -------------------------------------------------------------------------

    def _send_rows(self, rows: list[Row]) -> dict[int, Outcome]:
        """Send rows in one round trip; return what became of each partition's.

        Raises:
            LogUnavailable: Redis is away or cannot serve.
        """
        fresh = [row for row in rows if row[0] > self._taken.get(row[1], 0)]
        if not fresh:
            return {}
        by_partition = self._grouped(fresh)
        calls = [self._call(partition, events) for partition, events in by_partition.items()]
        self._crash("sender.before_append")
        self.spool.possibly_delivered.announce(rows[-1][0])
        try:
            with self._tracing.append(len(fresh), (trace_of(row[4]) for row in fresh)):
                replies = scripts.run_many(self._redis, calls)
        except (RedisError, OSError) as error:
            for partition, events in by_partition.items():  # Redis may have taken them
                self.spool.possibly_delivered.note(partition, events[-1].sequence)
            raise translate_redis_error(error, "append") from error
        self._crash("sender.after_append")
        outcomes = {
            partition: self._settle(partition, events, reply)
            for (partition, events), reply in zip(by_partition.items(), replies, strict=True)
        }
        if "failed" in outcomes.values():
            raise LogUnavailable(self._failure)
        return outcomes

    def _grouped(self, rows: list[Row]) -> Mapping[int, list[OutgoingEvent]]:
        grouped: dict[int, list[OutgoingEvent]] = defaultdict(list)
        for sequence, partition, event_id, digest, body in rows:
            packed = self._encoder.pack(body)
            grouped[partition].append(OutgoingEvent(sequence, event_id, digest, packed))
        return grouped

    def _call(self, partition: int, events: list[OutgoingEvent]) -> ScriptCall[Appended | TailLost]:
        return scripts.append(
            self._keys,
            partition,
            self.spool.producer,
            self._taken.get(partition, 0),
            events,
            window_ms=round(self._settings.dedupe_window * 500),  # two windows are kept
            max_ids=self._settings.dedupe_max_ids,
            possibly_delivered=self.spool.possibly_delivered.upto(partition),
        )

    def _settle(
        self, partition: int, events: list[OutgoingEvent], reply: Appended | TailLost | Exception
    ) -> Outcome:
        if isinstance(reply, Exception):
            return self._failed(partition, events, reply)
        if isinstance(reply, TailLost):
            self._rewind(partition, reply.last)
            return "behind"
        self._taken[partition] = events[-1].sequence
        self._resting.discard(partition)
        self.spool.possibly_delivered.note(partition, events[-1].sequence)
        self._note(events, reply)
        return "sent"

    def _failed(self, partition: int, events: list[OutgoingEvent], error: Exception) -> Outcome:
        """Let a partition whose key is not ours lag; any other failure is the server's."""
        meant = translate_redis_error(error, self._keys.log(partition))
        if isinstance(meant, ForeignKey):
            self._lagging[partition] = events[0].sequence - 1
            _log.error("%s; %d events wait in %s", meant, len(events), self.spool.path)
            return "refused"
        self._failure = str(meant)
        return "failed"

    def _note(self, events: list[OutgoingEvent], outcome: Appended) -> None:
        self.counts.sent += len(events)
        for index in outcome.conflicts:
            self.counts.conflicts += 1
            _log.error(
                "event %s came again with another payload; the first one stands",
                events[index].id.hex(),
            )

    # -- what Redis lost ------------------------------------------------------------------------

    def _ask_taken(self) -> dict[int, int]:
        with self._answering("producers"):
            return read_taken_sequences(
                self._redis, self._keys, self._settings.partitions, self.spool.producer
            )

    @contextmanager
    def _answering(self, where: str) -> Iterator[None]:
        try:
            yield
        except (RedisError, OSError) as error:
            raise translate_redis_error(error, where) from error

    def _rewind(self, partition: int, last: int) -> None:
        """Send what came after `last` again: Redis has no more of this partition."""
        had = self._taken.get(partition, 0)
        self._taken[partition] = last
        self._lagging[partition] = last
        if self._may_be_forgotten(last, had):
            return
        _log.warning("partition %d lost its tail: had %d, has %d; resending", partition, had, last)
        self.counts.rewinds += 1
        self._report_loss({partition: last})

    def _may_be_forgotten(self, last: int, had: int) -> bool:
        return may_be_forgotten(last, had, self._clock.now_ms(), self._settings.dedupe_window)

    def _report_loss(self, taken: Mapping[int, int]) -> None:
        """Report rows that nobody has any more: deleted here, and lost by Redis."""
        for partition, deleted in self.spool.deleted_sequences().items():
            last = taken.get(partition, deleted)
            if last < deleted and not self._may_be_forgotten(last, deleted):
                self.counts.lost += 1
                log_loss(partition, last, deleted, self.spool.producer)
