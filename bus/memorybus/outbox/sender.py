"""The sender: moves one spool's rows into the log in order, and resends rows that Redis lost.

Redis remembers for each partition the last sequence that it took from each producer. After every
connection the sender asks for it: rows up to this sequence are in the log, and later ones are sent
(G1, G2, G3). If a partition cannot take its rows, because another program uses the name of its key,
only this partition lags; the others go on. Spools that dead processes of this host left are sent by
any live process.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Literal, Self

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus import private
from memorybus.clock import Clock
from memorybus.errors import ForeignKey, LogError, LogUnavailable, SpoolCorrupt, SpoolError
from memorybus.log.replication import Replication
from memorybus.outbox.database import SpoolRow
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.producers import (
    check_unused,
    forget_producer,
    log_loss,
    may_be_forgotten,
    note_rest,
    read_taken_sequences,
)
from memorybus.outbox.rules import SendCounts, SendingContext
from memorybus.outbox.spool import SENT_SUFFIX, Spool
from memorybus.redis import scripts
from memorybus.redis.connect import redis_errors, translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Appended, OutgoingEvent, ScriptCall, TailLost
from memorybus.tracing.spans import Tracing
from memorybus.wire.codec import Encoder, trace_of

_log = logging.getLogger("memorybus")
BATCH_ROWS = 1_000  # rows read and sent at once
BATCH_BYTES = 4 << 20  # bytes of rows sent at once


SendOutcome = Literal["sent", "behind", "refused", "failed"]
"""What happened to a partition's rows.

``sent``: Redis took them; ``behind``: Redis has lost the newest rows before them; ``refused``: the
partition's key is not ours; ``failed``: the server cannot take them.
"""


class SendProgress(msgspec.Struct, frozen=True):
    """How far a spool has been sent: up to `cursor`, except for partitions that lag."""

    cursor: int  # every row up to this sequence is in the log, except those of lagging partitions
    whole: int  # every row up to this sequence is in the log, whatever its partition
    lagging: bool  # whether a partition lags

    @classmethod
    def from_lagging(cls, cursor: int, lagging: Mapping[int, int]) -> Self:
        """Return the progress for a cursor and the last sent sequences of lagging partitions."""
        return cls(cursor, min([cursor, *lagging.values()]), bool(lagging))


class Sender:
    """Sends one spool into the log. Belongs to one thread."""

    def __init__(
        self,
        spool: Spool,
        redis: Redis,
        context: SendingContext,
        counts: SendCounts | None = None,
    ) -> None:
        self.spool = spool
        self.progress = SendProgress.from_lagging(0, {})  # one value, which other threads may read
        self.counts = counts or SendCounts()  # see `SendCounts`
        self._redis = redis
        self._settings = settings = context.settings
        self._keys = Keys(settings.namespace)
        # tells whether sent rows would survive the loss of the server that took them
        self.replication = Replication(redis, self._keys, settings.partitions, spool.producer)
        self._encoder = Encoder(settings.compress_min_bytes)
        self._tracing = Tracing(settings.namespace)
        self._taken: dict[int, int] = {}
        self._lagging: dict[int, int] = {}
        self._idle: set[int] = set()
        self._clock = context.clock
        self._crash = context.crash
        self._failure: LogError = LogUnavailable("")

    @property
    def cursor(self) -> int:
        return self.progress.cursor

    @property
    def lagging(self) -> bool:
        return self.progress.lagging

    def _move_cursor(self, cursor: int) -> None:
        self.progress = SendProgress.from_lagging(cursor, self._lagging)

    def resync(self) -> None:
        """Ask Redis which rows of this producer it has, and send from there on."""
        self._taken = self._read_taken()
        check_unused(self.spool, self._taken)
        self._lagging, self._idle = {}, set()
        self._move_cursor(0)
        self._report_loss(self._taken)

    def confirm(self) -> None:
        """Compare what Redis has with what it took; rows that are missing will be sent again."""
        for partition, last in self._read_taken().items():
            if last < self._taken.get(partition, 0):
                self._rewind(partition, last)
        self._move_cursor(self.cursor)

    def delete_upto(self, sequence: int) -> None:
        """Delete rows that Redis has had long enough, if it still has them.

        As long as the spool is less than half full, rows that a replica lacks stay, too: the
        replica may take over.
        """
        full = self.spool.size > self._settings.spool_max_bytes // 2
        kept = full or self.replication.is_replicated()
        self.confirm()  # last: a Redis that lost its newest events is replicated too
        if kept:
            upto = min(sequence, self.progress.whole)
            self.spool.delete_upto(upto)
            self._rest_producer(upto)

    def _rest_producer(self, upto: int) -> None:
        """Let Redis forget this producer in partitions whose rows are all deleted here (G10)."""
        lasts = {p: n for p, n in self._taken.items() if n <= upto and n and p not in self._idle}
        if lasts:
            window = self._settings.dedupe_window
            with redis_errors("rest"):
                note_rest(self._redis, self._keys, lasts, self.spool.producer, window)
            self._idle |= lasts.keys()

    def forget_producer(self) -> None:
        with redis_errors("producers"):
            forget_producer(self._redis, self._keys, self._settings.partitions, self.spool.producer)

    def send(self) -> int:
        """Send the next rows; return how many were read (0: all is sent)."""
        last = self.spool.last
        rows = self.spool.rows_after(self.cursor, BATCH_ROWS, BATCH_BYTES)
        if not rows:
            # Sequences of an earlier opening of the spool have no rows.
            self._move_cursor(max(self.cursor, last))
        else:
            self._send_rows([row for row in rows if row[1] not in self._lagging])
            self._move_cursor(rows[-1][0])
        return len(rows)

    def catch_up(self) -> int:
        """Send the rows of lagging partitions again; return how many partitions still lag."""
        for partition in list(self._lagging):
            while self._catch_up_some(partition):
                pass
        self._move_cursor(self.cursor)
        return len(self._lagging)

    def _catch_up_some(self, partition: int) -> bool:
        rows = self.spool.rows_after(self._lagging[partition], BATCH_ROWS, BATCH_BYTES, partition)
        rows = [row for row in rows if row[0] <= self.cursor]
        if not rows:
            del self._lagging[partition]
            return False
        outcome = self._send_rows(rows).get(partition, "sent")
        if outcome == "sent":
            self._lagging[partition] = rows[-1][0]
        return outcome != "refused"

    # -- one round trip -------------------------------------------------------------------------

    def _send_rows(self, rows: list[SpoolRow]) -> dict[int, SendOutcome]:
        fresh = [row for row in rows if row[0] > self._taken.get(row[1], 0)]
        if not fresh:
            return {}
        by_partition = self._group_rows(fresh)
        calls = [self._build_call(partition, events) for partition, events in by_partition.items()]
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
            raise self._failure
        return outcomes

    def _group_rows(self, rows: list[SpoolRow]) -> Mapping[int, list[OutgoingEvent]]:
        grouped: dict[int, list[OutgoingEvent]] = defaultdict(list)
        for sequence, partition, event_id, digest, body in rows:
            packed = self._encoder.pack(body)
            grouped[partition].append(OutgoingEvent(sequence, event_id, digest, packed))
        return grouped

    def _build_call(
        self, partition: int, events: list[OutgoingEvent]
    ) -> ScriptCall[Appended | TailLost]:
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
    ) -> SendOutcome:
        if isinstance(reply, Exception):
            return self._note_failure(partition, events, reply)
        if isinstance(reply, TailLost):
            self._rewind(partition, reply.last)
            return "behind"
        self._taken[partition] = events[-1].sequence
        self._idle.discard(partition)
        self.spool.possibly_delivered.note(partition, events[-1].sequence)
        self._count_sent(events, reply)
        return "sent"

    def _note_failure(
        self, partition: int, events: list[OutgoingEvent], error: Exception
    ) -> SendOutcome:
        meant = translate_redis_error(error, self._keys.log(partition))
        if isinstance(meant, ForeignKey):
            self._lagging[partition] = events[0].sequence - 1
            _log.error("%s; %d events wait in %s", meant, len(events), self.spool.path)
            return "refused"
        self._failure = meant
        return "failed"

    def _count_sent(self, events: list[OutgoingEvent], outcome: Appended) -> None:
        self.counts.sent += len(events)
        for index in outcome.conflicts:
            self.counts.conflicts += 1
            _log.error(
                "event %s came again with another payload; the first one counts",
                events[index].id.hex(),
            )

    # -- what Redis lost ------------------------------------------------------------------------

    def _read_taken(self) -> dict[int, int]:
        with redis_errors("producers"):
            return read_taken_sequences(
                self._redis, self._keys, self._settings.partitions, self.spool.producer
            )

    def _rewind(self, partition: int, last: int) -> None:
        """Mark a partition so that its rows after `last` are sent again: Redis lacks them."""
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
        for partition, deleted in self.spool.deleted_sequences().items():
            last = taken.get(partition, deleted)
            if last < deleted and not self._may_be_forgotten(last, deleted):
                self.counts.lost += 1
                log_loss(partition, last, deleted, self.spool.producer)


def drain_orphans(
    files: SpoolFiles,
    redis: Redis,
    context: SendingContext,
    stopping: Callable[[], bool] = bool,
) -> int:
    """Send the spools that dead processes of this host left; return how many events were sent."""
    sent = 0
    for spool in files.adopt_all():
        try:
            sent += _send_orphan(spool, redis, context)
        except SpoolCorrupt as error:
            saved = files.set_aside(spool, str(error))
            if saved is not None:
                saved.close()  # the next call sends it
        except LogError:
            spool.close()
            raise
        except (SpoolError, OSError) as error:
            files.report(spool.path, f"{spool.path} waits: {error}")
            spool.close()
        if stopping():
            break
    return sent


def _send_orphan(spool: Spool, redis: Redis, context: SendingContext) -> int:
    sender = Sender(spool, redis, context)
    sender.resync()
    while sender.send():
        pass
    sender.catch_up()
    sent = sender.counts.sent
    keep = context.settings.spool_keep
    young = spool.size and _idle_for(spool, sent > 0, context.clock) < keep
    followed = sender.replication.is_replicated()
    sender.confirm()  # last: a Redis that lost its newest events is replicated too
    if sender.lagging or young or not followed:
        spool.close()
    else:
        spool.discard()  # first: a crash after this only leaves a field in Redis
        sender.forget_producer()
    return sent


def _idle_for(spool: Spool, sent: bool, clock: Clock) -> float:
    """Return for how many seconds nothing had to be sent, according to a file beside the spool."""
    mark = spool.path.with_suffix(SENT_SUFFIX)
    try:
        if sent or not mark.exists():
            private.write(mark, str(clock.now_ms()).encode())
        text = mark.read_text()
    except OSError:
        return 0.0  # the disk is full: the spool stays until there is room for the mark
    return (clock.now_ms() - int(text)) / 1000 if text.isdigit() else 0.0
