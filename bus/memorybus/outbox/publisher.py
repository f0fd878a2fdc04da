"""The publisher: takes an event, inserts it into the local spool, returns a receipt (G1, G9)."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import get_args

import msgspec

from memorybus.concurrency.forking import ProcessLock
from memorybus.errors import ConfigError, EventTooLarge, SpoolCorrupt, SpoolError
from memorybus.events import LATEST, AnyEvent, Envelope, Event, Scope, SessionRef, TurnCompleted
from memorybus.ids import checksum
from memorybus.msgspec_types import prepared
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.flusher import Flusher
from memorybus.outbox.rules import Counters, SendingContext
from memorybus.outbox.spool import Spool
from memorybus.recall.model import Ask
from memorybus.receipt import Level, Receipt
from memorybus.redis.keys import partition_of
from memorybus.tracing.spans import TRACING_API, Tracing
from memorybus.wire.exact import NOT_AS_GIVEN, exact_envelope

_LEVELS = get_args(Level)
_ID_BYTES = 16
_STOP_SECONDS = 1.0  # seconds within which the flusher of a damaged spool has to end
_MIN_CLOSE_SECONDS = 0.1
"""When the bus is closed, the flusher gets at least this many seconds to end."""


class Writer:
    """Writes envelopes so that readers get what was given. Safe to call from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(prepared(Envelope)).decode

    def write(self, envelope: Envelope) -> tuple[Envelope, bytes, bytes]:
        try:
            body, event_id = self._encode(envelope), bytes.fromhex(envelope.id)
            is_read_as_given = (
                self._decode(body) == envelope
                and envelope.v == envelope.event.version
                and len(event_id) == _ID_BYTES
                and event_id.hex() == envelope.id
                and 0 <= envelope.at <= LATEST
            )
        except (ValueError, *NOT_AS_GIVEN):
            is_read_as_given = False
        if not is_read_as_given:
            envelope = exact_envelope(envelope)
            body = self._encode(envelope)
        if len(body) > self._max_bytes:
            raise EventTooLarge(
                f"this {type(envelope.event).__name__} has {len(body)} bytes, and "
                f"`event_max_bytes` is {self._max_bytes}. Publish less text per event, or raise "
                "the bound"
            )
        event = envelope.event
        if isinstance(event, TurnCompleted) and event.recalled:
            event = msgspec.structs.replace(event, recalled=())
        return envelope, body, checksum(self._encode(event))


class Publisher:
    """Publishes the events of one process. Safe to call from any thread, and after a fork."""

    def __init__(
        self, context: SendingContext, tracing: Tracing, while_connected: Callable[[], None]
    ) -> None:
        self._context = context
        self._tracing = tracing
        self._settings = settings = context.settings
        self._clock = context.clock
        self._crash = context.crash
        self._while_connected = while_connected
        self._writer = Writer(settings.event_max_bytes)
        self._files = SpoolFiles.from_settings(settings, context.new_id, context.clock)
        self._inherited: list[tuple[Spool, Flusher]] = []
        self._swapping = ProcessLock()
        self._closed = False
        self._leaving = 0.0
        self._start_flusher(self._files.claim())

    def _start_flusher(self, spool: Spool) -> None:
        flusher = Flusher(spool, self._files, self._context, self._while_connected)
        flusher.start()
        self.spool, self.flusher = spool, flusher
        self._pid = os.getpid()  # last: until then other threads wait in `_adapt_to_fork`

    def publish(
        self,
        event: AnyEvent,
        *,
        key: str,
        scope: Scope,
        session: SessionRef,
        event_id: str = "",
        at: int | None = None,
        trace: str = "",
        durable: bool = False,
    ) -> Receipt:
        """Accept an event, as `MemoryBus.publish`: it then survives this process (G1)."""
        envelope = Envelope(
            id=event_id or self._context.new_id(),
            key=key,
            scope=scope,
            session=session,
            at=self._clock.now_ms() if at is None else at,
            v=event.version if isinstance(event, Event) else 0,  # the writer refuses others
            trace=trace,
            event=event,
        )
        if TRACING_API not in sys.modules:  # nobody traces: the usual case
            return self._accept(envelope, durable)
        with self._tracing.publish(envelope.id, type(event).__name__) as span:
            if span and not trace:
                envelope = msgspec.structs.replace(envelope, trace=span.trace)
            return self._accept(envelope, durable)

    def _accept(self, envelope: Envelope, durable: bool) -> Receipt:
        envelope, body, mark = self._writer.write(envelope)
        partition = partition_of(envelope.key, self._settings.partitions)
        row = (partition, bytes.fromhex(envelope.id), mark, body)
        usable = os.getpid() == self._pid and not (self._closed or self.flusher.corrupt)
        spool = self.spool if usable else self._usable_spool()
        try:
            sequence = spool.append(*row, durable=durable)
        except SpoolCorrupt as error:
            spool = self._replace_spool(spool, str(error))
            sequence = spool.append(*row, durable=durable)
        self.flusher.wake()
        self._crash("publisher.after_spool")
        if self._leaving:
            self.hurry(self._leaving)
        return Receipt(envelope.id, "spooled", sequence, self.flusher.state)

    def _usable_spool(self) -> Spool:
        self._adapt_to_fork()
        if self.flusher.corrupt:
            return self._replace_spool(self.spool, "damage found while it was read")
        if self._closed:
            raise SpoolError("the bus is closed; connect again to publish")
        return self.spool

    def _adapt_to_fork(self) -> None:
        """After a fork, open a spool for the child, once: the inherited one belongs to the parent.

        The inherited objects are kept, because closing a SQLite file disturbs another process that
        has it open.
        """
        if os.getpid() == self._pid or self._closed:
            return
        with self._swapping.here():
            if os.getpid() != self._pid:
                spool = self._files.claim()
                self._inherited.append((self.spool, self.flusher))
                self._start_flusher(spool)

    def _replace_spool(self, failed: Spool, why: str) -> Spool:
        """Set a damaged spool aside, and go on with a new one that has all readable rows."""
        with self._swapping.here():
            if self._closed:
                raise SpoolError("the bus is closed; connect again to publish")
            if self.spool is failed:
                self.flusher.stop(_STOP_SECONDS)
                self._start_flusher(self._files.replace(failed, why))
            return self.spool

    @property
    def last_sequence(self) -> int:
        return self._usable_spool().last

    @property
    def unsent(self) -> int:
        self._adapt_to_fork()
        return self.flusher.unsent

    def counters(self, prefetch_failures: int, prefetch_failed: Mapping[str, int]) -> Counters:
        """Return all counters; those of prompts are the caller's."""
        sent = msgspec.structs.asdict(self.flusher.counts)
        return Counters(
            **sent,
            prefetch_failures=prefetch_failures,
            prefetch_failed=prefetch_failed,
            asks_dropped=self.flusher.dropped_asks,
        )

    def ask(self, ask: Ask) -> None:
        """Ask for a recall once every event published so far is in the log."""
        self._usable_spool()
        self.flusher.ask(ask)

    def flush(self, level: Level, timeout: float) -> bool:
        """Wait until everything published so far has reached `level`, as Redis says now (G1)."""
        if level not in _LEVELS:
            raise ConfigError(f"the level {level!r} is unknown; use one of: {', '.join(_LEVELS)}")
        if level == "spooled":
            return True
        self._adapt_to_fork()
        return self.flusher.flush(self.spool.last, timeout, replicated=level == "replicated")

    def hurry(self, timeout: float) -> bool:
        """Send what Redis takes within `timeout` seconds; the rest stays in the spool."""
        if self._closed or os.getpid() != self._pid:
            return True
        return self.flusher.wait_sent(self.spool.last, timeout)

    def leave(self, timeout: float) -> None:
        """Call `hurry` now, and from now on after each event that is published."""
        self._leaving = timeout
        self.hurry(timeout)

    def close(self, timeout: float) -> None:
        """Send the events that Redis takes within `timeout` seconds, then close the spool."""
        if self._closed or os.getpid() != self._pid:
            return
        deadline = self._clock.monotonic() + timeout
        self.hurry(timeout)
        with self._swapping.here():
            self._closed = True
            self.flusher.stop(max(_MIN_CLOSE_SECONDS, deadline - self._clock.monotonic()))
            self.spool.close()
