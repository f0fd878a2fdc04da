"""The publisher: takes an event, inserts it into the local spool, returns a receipt (G1, G9)."""

import os
from collections.abc import Callable
from typing import get_args

import msgspec

from memorybus.concurrency.forking import ProcessLock
from memorybus.errors import ConfigError, SpoolCorrupt, SpoolError
from memorybus.events import Envelope
from memorybus.recall.pending import Ask
from memorybus.receipt import Level, Receipt
from memorybus.redis.keys import partition_of
from memorybus.sending.context import SendingContext
from memorybus.sending.counters import Counters
from memorybus.sending.flusher import Flusher
from memorybus.spool.files import SpoolFiles
from memorybus.spool.outbox import Spool
from memorybus.wire.writer import Writer

_LEVELS = get_args(Level)
_STOP_SECONDS = 1.0
"""Seconds within which the flusher of a damaged spool has to end."""

_MIN_CLOSE_SECONDS = 0.1
"""When the bus is closed, the flusher gets at least this many seconds to end."""


class Publisher:
    """Publishes the events of one process. Safe to call from any thread, and after a fork.

    Args:
        context: what all parts of sending share.
        while_connected: called now and then on the flusher's thread while Redis answers.
    """

    def __init__(self, context: SendingContext, while_connected: Callable[[], None]) -> None:
        """Claim a spool and start the flusher.

        Raises:
            SpoolError: no spool can be opened under `data_dir`.
        """
        self._context = context
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

    def publish(self, envelope: Envelope, *, durable: bool = False) -> Receipt:
        """Accept an event: when this returns, it survives this process (G1).

        Args:
            envelope: the event with its id (the same id enters the log once, G2), key and time.
            durable: the event must also survive a power cut (fsync).

        Raises:
            InvalidEvent: readers could not read a value as it was given; see `Writer.write`.
            EventTooLarge: the event has more than ``event_max_bytes``.
            SpoolFull: the spool has reached its bound, or the disk is full.
        """
        accepted, body, mark = self._writer.write(envelope)
        partition = partition_of(accepted.key, self._settings.partitions)
        sequence = self._append(partition, bytes.fromhex(accepted.id), mark, body, durable)
        self.flusher.wake()
        self._crash("publisher.after_spool")
        if self._leaving:
            self.hurry(self._leaving)
        return Receipt(accepted.id, "spooled", sequence, self.flusher.state)

    def _append(
        self, partition: int, event_id: bytes, mark: bytes, body: bytes, durable: bool
    ) -> int:
        spool = self._usable_spool()
        try:
            return spool.append(partition, event_id, mark, body, durable=durable)
        except SpoolCorrupt as error:
            spool = self._replace_spool(spool, str(error))
            return spool.append(partition, event_id, mark, body, durable=durable)

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
        """Set a damaged spool aside, and go on with a new one that has all rows that are readable.

        Several threads may find the damage; only the first one replaces the spool.
        """
        with self._swapping.here():
            if self._closed:
                raise SpoolError("the bus is closed; connect again to publish")
            if self.spool is failed:
                self.flusher.stop(_STOP_SECONDS)
                self._start_flusher(self._files.replace(failed, why))
            return self.spool

    @property
    def last_sequence(self) -> int:
        """The sequence of the last event that this process published."""
        return self._usable_spool().last

    @property
    def unsent(self) -> int:
        """How many events this process published that are not known to be in the log."""
        self._adapt_to_fork()
        return self.flusher.unsent

    def counters(self, prefetch_failures: int) -> Counters:
        """Return all counters; `prefetch_failures` is the caller's count of its failed reads."""
        sent = msgspec.structs.asdict(self.flusher.counts)
        return Counters(
            **sent,
            prefetch_failures=prefetch_failures,
            asks_dropped=self.flusher.dropped_asks,
        )

    def ask(self, ask: Ask) -> None:
        """Ask for a recall once every event published so far is in the log."""
        self._usable_spool()
        self.flusher.ask(ask)

    def flush(self, level: Level, timeout: float) -> bool:
        """Wait until everything published so far has reached `level`, as Redis says now (G1).

        Returns:
            False if it has not after `timeout` seconds; even then no event is lost.
        """
        if level not in _LEVELS:
            raise ConfigError(f"the level {level!r} is unknown; use one of: {', '.join(_LEVELS)}")
        if level == "spooled":
            return True
        self._adapt_to_fork()
        return self.flusher.flush(self.spool.last, timeout, replicated=level == "replicated")

    def hurry(self, timeout: float) -> bool:
        """Send the events that Redis takes within `timeout` seconds; the rest stays in the spool.

        Returns:
            Whether Redis has taken everything that this process published.
        """
        if self._closed or os.getpid() != self._pid:
            return True
        return self.flusher.wait_sent(self.spool.last, timeout)

    def leave(self, timeout: float) -> None:
        """Call `hurry` now, and from now on after each event that is published.

        Nothing is closed: other functions that run at the exit may publish after this.
        """
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
