"""Answers the recalls for which prompts wait, in a separate thread.

The thread has its own connections and provider instance, so that a recall that was asked ahead
never delays a prompt, however long it takes. A recall process has such a thread; a worker has one
for each provider whose recall process does not run yet (`processes.recall_processes`).
"""

import logging
import os
import threading
from collections.abc import Callable

import msgspec
from memorybus.clock import SYSTEM
from memorybus.concurrency.backoff import backoff
from memorybus.config.settings import Settings
from memorybus.ids import new_rng
from memorybus.recall import prompt_asks
from memorybus.recall.queue import longest_run
from memorybus.redis.connect import connect_jobs, connect_redis
from memorybus.redis.keys import Keys
from memorybus.testing import CrashPoint
from memorybus.text.redact import describe_error
from redis.exceptions import RedisError
from structlog.contextvars import bind_contextvars

from memorybus_workers.jobs.live import LiveInstances
from memorybus_workers.jobs.prefetch import ReadYourWrites, Recaller

_log = logging.getLogger("memorybus")
_BLOCK_SECONDS = 1.0
"""Seconds for which the thread waits for a question before it checks whether it must end."""

OVERTIME_SECONDS = 2
"""Seconds after its time limit in which a call must return; else the process ends, and is replaced.
"""


_MAX_WAIT_SECONDS = 0.2
"""Seconds that a prompt's recall waits for the events that its session published before."""

_MAX_MISSING = 500
"""If more events than this are missing, a prompt's recall does not wait: they take too long."""


def end_process() -> None:
    os._exit(1)


class PromptAnswerer:
    """Answers one provider's prompts until `stop`."""

    def __init__(
        self,
        settings: Settings,
        provider: str,
        crash: CrashPoint,
        on_answer: Callable[[], None] = lambda: None,
        on_hang: Callable[[], None] = end_process,
    ) -> None:
        self._keys = Keys(settings.namespace)
        self._jobs = connect_jobs(settings)
        self._redis = connect_redis(settings)
        self._instances = LiveInstances(settings, SYSTEM, self._redis, provider, crash)
        wait = min(_MAX_WAIT_SECONDS, settings.recall_wait)
        applied = ReadYourWrites(self._redis, self._keys, wait, SYSTEM, most=_MAX_MISSING)
        self._recaller = Recaller(self._redis, settings, SYSTEM, self._instances, applied, crash)
        self._provider = provider
        self._on_answer = on_answer
        self._on_hang = on_hang
        self._longest = longest_run(settings) + OVERTIME_SECONDS
        self._rng = new_rng()
        self._stop = threading.Event()
        self._waits = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memorybus-prompts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """Take no more questions, once the present wait for one has ended."""
        self._stop.set()

    def stop(self) -> None:
        """Stop: wait for a call that runs, but cut off a wait for questions."""
        self.leave()
        if self._waits.is_set():
            self._jobs.connection_pool.disconnect()
        self._thread.join(_BLOCK_SECONDS + OVERTIME_SECONDS)

    def _run(self) -> None:
        bind_contextvars(provider=self._provider)
        failures = 0
        while not self._stop.is_set():
            try:
                self._answer_next()
                failures = 0
            except (RedisError, OSError) as error:
                _log.debug("prompts of %s: %s", self._provider, describe_error(error))
                self._stop.wait(backoff(failures, self._rng))
                failures += 1
            except Exception as error:  # a question that fails must not keep others from an answer
                _log.warning(
                    "a prompt's recall of %s failed: %s", self._provider, describe_error(error)
                )
        self._instances.close_all()
        self._redis.close()
        self._jobs.close()

    def _answer_next(self) -> None:
        self._waits.set()
        try:
            ask = prompt_asks.take_question(self._jobs, self._keys, self._provider, _BLOCK_SECONDS)
        except msgspec.MsgspecError as error:
            _log.warning("%s: what is no question: %s", self._keys.asks(self._provider), error)
            return
        finally:
            self._waits.clear()
        if ask is None:
            return
        watch = threading.Timer(self._longest, self._note_hang)
        watch.daemon = True
        watch.start()
        try:
            answer = self._recaller.answer(ask, self._provider)
        finally:
            watch.cancel()
        if answer is not None:
            prompt_asks.send_reply(self._jobs, self._keys, ask, answer)
        self._on_answer()

    def _note_hang(self) -> None:
        _log.error("a recall of %s does not return", self._provider)
        self._on_hang()
