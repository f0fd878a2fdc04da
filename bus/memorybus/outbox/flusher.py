"""The flusher: a thread that moves a spool into the log and never gives up (G1, G9)."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from memorybus.concurrency.backoff import backoff
from memorybus.concurrency.forking import import_guard
from memorybus.concurrency.wakeup import StopSignal, Waiters, Wake
from memorybus.errors import LogError, MemoryBusError, SpoolCorrupt, SpoolError
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.rules import (
    ConnectionAttempts,
    PendingFlush,
    PendingFlushes,
    RowRetention,
    SendCounts,
    SendingContext,
)
from memorybus.outbox.spool import Spool
from memorybus.recall.model import Ask
from memorybus.recall.pending import PendingAsks
from memorybus.receipt import LogState

if TYPE_CHECKING:
    from redis import Redis

    from memorybus.outbox.sender import Sender
    from memorybus.recall.requester import RecallRequester

# The Redis client needs this module, which Python imports no more once the main thread has ended.
with contextlib.suppress(RuntimeError):  # it has ended already: events wait in the spool
    import concurrent.futures.thread  # noqa: F401

_log = logging.getLogger("memorybus")
COALESCE_SECONDS = 0.001
"""Seconds between the first event and the send: events that follow closely are sent with it."""

GATHER_SECONDS = 0.02
"""Seconds between sends while events pour in: fewer, larger batches disturb the agent less."""

_MAX_BATCHES = 8  # the most batches that are sent before the flusher turns to its other work
_GATHER_EVENTS = 64
"""A batch of at least this many events shows that many are coming: `GATHER_SECONDS` follows it."""

# Seconds between two rounds of each kind of work.
_HOUSEKEEPING_SECONDS = 0.5
_ADOPT_SECONDS = 5.0
_NOTE_SECONDS = 0.5
_LAG_RETRY_SECONDS = 1.0


class Flusher:
    """Sends one spool. Start it once; `stop` ends the thread."""

    def __init__(
        self,
        spool: Spool,
        files: SpoolFiles,
        context: SendingContext,
        while_connected: Callable[[], None],
    ) -> None:
        self._while_connected = while_connected
        self.state: LogState = "unknown"  # whether Redis answers
        self.problem = ""  # why it does not; "" while it does
        self.corrupt = False  # whether the spool is damaged; the publisher then replaces it
        self._spool = spool
        self._files = files
        self._context = context
        self._settings = context.settings
        self._clock = context.clock
        self._rng = context.rng
        self._wake = Wake()
        self._stop = StopSignal()
        self._progress = Waiters()
        self._flushes = PendingFlushes()
        self._asks = PendingAsks(context.clock, context.rng)
        self._retention = RowRetention()
        self._rewinds = 0
        self._attempts = ConnectionAttempts()
        self._logged: set[str] = set()
        self._adopt_at = self._lag_at = self._note_at = 0.0
        self._cursor = 0
        self.counts = SendCounts()  # see `SendCounts`
        self._sender: Sender | None = None
        self._asker: RecallRequester | None = None
        self._asking: Redis | None = None
        self._redis: Redis | None = None
        self._drain: Callable[[], int] | None = None
        self._thread = threading.Thread(target=self._run, name="memorybus-flusher", daemon=True)

    # -- called by the agent's threads ------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; as Python ends it may start none, and events wait in the spool."""
        import_guard()  # created here, so that forks respect it before the thread's first import
        try:
            self._thread.start()
        except RuntimeError as error:
            self.state, self.problem = "down", str(error)

    def wake(self) -> None:
        self._wake.set()

    def ask(self, ask: Ask) -> None:
        """Ask for a recall after the events so far; a session's newest request counts (G10)."""
        self._asks.put(ask)
        self.wake()

    def wait_sent(self, sequence: int, timeout: float) -> bool:
        """Wait until the log has taken every event up to `sequence`, or Redis cannot be reached.

        Only a connection that fails after this call began proves that Redis is away. While Redis
        hangs, several calls one after another wait no longer than one of them alone.
        """
        away, taken = self._attempts.fails_from_now(), self.counts.sent
        self._stop.interrupt()
        self.wake()

        def done() -> bool:
            return self._is_sent(sequence) or away() or self.corrupt or not self._thread.is_alive()

        if not self._progress.wait_for(done, self._attempts.time_left(taken, timeout)):
            self._attempts.time_out(taken, timeout)
        return self._is_sent(sequence)

    def flush(self, sequence: int, timeout: float, *, replicated: bool) -> bool:
        """Wait until Redis, asked after this call began, has every event up to `sequence` (G1)."""
        return self._flushes.wait(PendingFlush(sequence, replicated), timeout, self.wake)

    def _is_sent(self, sequence: int) -> bool:
        sender = self._sender  # read once: the flusher's thread may set it to None
        if sender is None:
            return False
        progress = sender.progress
        return progress.cursor >= sequence and not progress.lagging

    @property
    def dropped_asks(self) -> int:
        return self._asks.dropped

    @property
    def unsent(self) -> int:
        sender = self._sender
        sent = sender.progress.whole if sender is not None else self._cursor
        return self._spool.count_after(sent)

    def stop(self, timeout: float) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._run_round()
                self._attempts.succeed()
                self._logged.clear()
            except SpoolCorrupt as error:
                self.corrupt = True  # at the next event the publisher replaces the file
                self._back_off(error)
                return
            except MemoryBusError as error:
                self._back_off(error)
            except Exception as error:  # the thread must outlive any mistake (G9)
                _log.exception("the flusher met an unexpected error; it continues")
                self._back_off(error)
        for opened in (self._redis, self._asker, self._asking):
            if opened is not None:
                opened.close()

    def _run_round(self) -> None:
        sender = self._sender or self._connect()
        self._wake.wait(_HOUSEKEEPING_SECONDS)
        self._stop.wait(COALESCE_SECONDS)
        self._send_all(sender)
        self._answer(sender, replicated=True)
        if self._asker is not None:
            self._asks.send(self._asker, sender.cursor)
        self._housekeep(sender)

    def _connect(self) -> Sender:
        self._attempts.begin()
        with import_guard():  # a fork during an import would leave the child half a module
            import encodings.idna  # noqa: F401 - Python imports it at the first host name

            from memorybus.log.stream import EventLog
            from memorybus.outbox.sender import Sender, drain_orphans
            from memorybus.recall.requester import RecallRequester
            from memorybus.redis.connect import connect_redis

        redis = self._redis = connect_redis(self._settings, single=True)
        EventLog(redis, self._settings).open()
        self._drain = partial(drain_orphans, self._files, redis, self._context, self._stop.is_set)
        self._adopt_orphans()
        sender = Sender(self._spool, redis, self._context, self.counts)
        sender.resync()
        self._retention.restart()
        if self._asker is None:  # its own connection: its failures do not stop the sending
            self._asking = connect_redis(self._settings)
            self._asker = RecallRequester(self._asking, self._settings)
        self._sender = sender
        self.state, self.problem = "up", ""
        self._call_while_connected()
        self._wake.set()
        return sender

    def _send_all(self, sender: Sender) -> None:
        for _ in range(_MAX_BATCHES):
            sent = sender.send()
            self._progress.wake_all()
            self._answer(sender, replicated=False)
            if not sent or self._stop.is_set():
                break
            if sent >= _GATHER_EVENTS:
                self._stop.wait(GATHER_SECONDS)
        else:
            self._wake.set()  # there may be more, but housekeeping comes first
        now = self._clock.monotonic()
        if sender.lagging and now >= self._lag_at:
            self._lag_at = now + _LAG_RETRY_SECONDS
            sender.catch_up()
        if self.counts.rewinds > self._rewinds:
            self._rewinds = self.counts.rewinds
            self._retention.restart()
        self._progress.wake_all()
        self._answer(sender, replicated=False)

    def _call_while_connected(self) -> None:
        """Call `while_connected`; if it fails, the sending goes on."""
        try:
            self._while_connected()
        except LogError as error:
            _log.debug("after connecting: %s", error)

    def _answer(self, sender: Sender, *, replicated: bool) -> None:
        due = self._flushes.find_due(sender.progress.whole, replicated=replicated)
        if due and (not replicated or sender.replication.is_confirmed(_HOUSEKEEPING_SECONDS)):
            sender.confirm()  # last: a Redis that lost its newest events is replicated too
            self._flushes.answer(due, sender.progress.whole)

    def _housekeep(self, sender: Sender) -> None:
        self._call_while_connected()
        now = self._clock.monotonic()
        if now >= self._adopt_at:
            self._adopt_orphans()
        self._delete_old(sender, now)
        self._spool.tidy()
        self._note_unsent(now, sender.cursor)

    def _note_unsent(self, now: float, cursor: int) -> None:
        if now >= self._note_at:
            self._note_at = now + _NOTE_SECONDS
            self._spool.note_unsent(cursor)

    def _delete_old(self, sender: Sender, now: float) -> None:
        """Delete the rows that Redis took `spool_keep` seconds ago, if it still has them."""
        self._retention.note(now, sender.progress.whole)
        pressed = self._spool.size > self._settings.spool_max_bytes // 2
        keep = 0.0 if pressed else self._settings.spool_keep
        if upto := self._retention.take_upto(now - keep):
            sender.delete_upto(upto)

    def _adopt_orphans(self) -> None:
        self._adopt_at = self._clock.monotonic() + _ADOPT_SECONDS
        if self._drain is not None:
            self._drain()

    def _back_off(self, error: Exception) -> None:
        if str(error) not in self._logged:  # Redis may take connections and refuse every event
            self._logged.add(str(error))
            level = logging.WARNING if isinstance(error, LogError) else logging.ERROR
            _log.log(level, "events wait in %s: %s", self._spool.path, error)
        self.state, self.problem = "down", str(error)
        self._attempts.fail()
        self._progress.wake_all()
        if self._sender is not None:
            self._cursor = self._sender.progress.whole
            self._sender = None
        if self._redis is not None:
            self._redis.close()
        with contextlib.suppress(SpoolError, OSError):
            self._spool.tidy()
            self._note_unsent(self._clock.monotonic(), self._cursor)
        self._stop.wait(backoff(self._attempts.in_a_row - 1, self._rng))
