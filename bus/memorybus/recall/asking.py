"""Asks providers for the answer to a prompt now, and waits no longer than allowed (G9)."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec

from memorybus.clock import Clock
from memorybus.concurrency.forking import import_guard
from memorybus.concurrency.wakeup import Waiters
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.ids import NewId
from memorybus.recall.health import Counted
from memorybus.recall.model import WarmAsk, WarmResult
from memorybus.receipt import LogState

if TYPE_CHECKING:
    from memorybus.recall.prompt_asks import PromptConnection

_log = logging.getLogger("memorybus")
_SILENCE_SECONDS = 5.0
"""Seconds for which no prompt asks after Redis has not taken a question in time."""

_MAX_WAITING_PROMPTS = 256
"""How many prompts may wait at once; further prompts use what is warm (G10)."""


class Replies(msgspec.Struct):
    """The replies that the thread of one prompt has received so far."""

    # the providers that were asked; None while that is not known
    asked: frozenset[str] | None = None
    results: dict[str, WarmResult | None] = {}  # their results; None for a provider that failed
    seconds: dict[str, float] = {}  # how long each of them took
    ended: bool = False  # whether no more answers will come
    hung: bool = False  # whether Redis has taken the connection, but did not reply in time
    unsent: bool = False  # whether the question was to be sent, and was not
    # the providers that are not asked at present, because their recalls fail
    paused: frozenset[str] = frozenset()

    @property
    def complete(self) -> bool:
        return self.ended or (self.asked is not None and self.asked <= self.results.keys())

    def answered(self) -> dict[str, WarmResult]:
        return {name: result for name, result in self.results.items() if result is not None}


class PromptAsker:
    """Asks providers from an agent's process. Safe to call from any thread, and after a fork."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        make_id: NewId,
        log_state: Callable[[], LogState],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._make_id = make_id
        self._log_state = log_state
        self._reset()

    def _reset(self) -> None:
        self.recalling: frozenset[str] = frozenset()
        self._connection: PromptConnection | None = None
        self._connecting = threading.Lock()
        self._waiters = Waiters()
        self._asking: set[threading.Thread] = set()
        self._late = Replies(asked=frozenset()), 0.0
        self._pid = os.getpid()

    def ask(self, question: WarmAsk, wait: float, there: Collection[str]) -> Replies:
        """Ask every provider that answers recalls, and wait at most `wait` seconds for the replies.

        None is asked while Redis is away, or lets a question wait in vain. `there` have answered
        already.
        """
        if self._pid != os.getpid():
            self._reset()
        replies = Replies()
        if wait <= 0 or self._is_silent() or len(self._asking) >= _MAX_WAITING_PROMPTS:
            return Replies(unsent=wait > 0)
        until = self._clock.monotonic() + wait
        if self._start_thread(lambda: self._run(question, until, there, replies)):
            self._waiters.wait_for(lambda: replies.complete, wait)
        if replies.asked is None and (replies.hung or not replies.ended):
            self._late = replies, until + _SILENCE_SECONDS
        results, seconds = dict(replies.results), dict(replies.seconds)
        # A process that still connects has just begun, and nothing has failed yet.
        unsent = replies.asked is None and (replies.ended or self._connection is not None)
        return Replies(replies.asked, results, seconds, True, unsent=unsent, paused=replies.paused)

    def _is_silent(self) -> bool:
        """Return whether Redis is away, or has not taken the last question yet (it may hang)."""
        late, until = self._late
        waits = late.asked is None and self._clock.monotonic() < until
        return waits or self._log_state() == "down"

    def _start_thread(self, run: Callable[[], None]) -> bool:
        try:
            threading.Thread(target=run, name="memorybus-prompt", daemon=True).start()
        except RuntimeError:  # the interpreter is about to end
            return False
        return True

    def _run(
        self, question: WarmAsk, until: float, there: Collection[str], replies: Replies
    ) -> None:
        thread = threading.current_thread()
        self._asking.add(thread)
        try:
            self._ask(question, until, there, replies)
        except Exception as error:  # redis-py's among them: it is imported on this thread
            replies.hung = _is_timeout(error)
            level = logging.DEBUG if _is_expected(error) else logging.WARNING
            _log.log(level, "a prompt's recall: %s", error)
        finally:
            self._asking.discard(thread)
            replies.ended = True
            self._waiters.wake_all()

    def _ask(
        self, question: WarmAsk, until: float, there: Collection[str], replies: Replies
    ) -> None:
        began = self._clock.monotonic()
        connection = self._connect()
        answering = connection.answering.current()
        self.recalling = frozenset(answering.recalling)
        replies.paused = frozenset(answering.paused).difference(there)
        asked = self.recalling.difference(there)
        left = until - self._clock.monotonic()
        ask = connection.ask(question, asked, self._make_id(), left) if asked else None
        replies.asked = asked
        while ask and not replies.complete and (left := until - self._clock.monotonic()) > 0:
            reply = connection.await_reply(ask, left)
            if reply is not None and reply.provider in asked:
                replies.seconds[reply.provider] = self._clock.monotonic() - began
                replies.results[reply.provider] = reply.result

    def _connect(self) -> PromptConnection:
        with self._connecting:
            if self._connection is None:
                with import_guard():  # a fork during an import would leave the child half a module
                    from memorybus.recall.prompt_asks import PromptConnection
                self._connection = PromptConnection(self._settings, self._clock)
            return self._connection

    def report(self, counted: deque[Counted]) -> None:
        if counted and self._log_state() == "up":
            self._connect().report(counted)

    def delete_slot(self, slot: str) -> None:
        if self._connection is not None:
            self._connection.delete_slot(slot)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._pid == os.getpid():
            connection.close()


def _is_expected(error: Exception) -> bool:
    from redis.exceptions import RedisError

    return isinstance(error, MemoryBusError | RedisError | OSError | msgspec.MsgspecError)


def _is_timeout(error: Exception) -> bool:
    """Return whether Redis took too long; the error may be a translated one."""
    from redis.exceptions import TimeoutError as RedisTimeout

    return isinstance(error, RedisTimeout) or isinstance(error.__cause__, RedisTimeout)
