"""Answers the recalls for which prompts wait, in a separate thread of a recall process.

The thread has its own connection and provider instance, so that a recall that was asked ahead never
delays a prompt, however long it takes.
"""

import logging
import os
import threading
from collections.abc import Callable

import msgspec
from memorybus import logs
from memorybus.concurrency.backoff import backoff
from memorybus.config.settings import Settings
from memorybus.ids import new_rng
from memorybus.recall import prompt_asks
from memorybus.recall.queue import longest_run
from memorybus.redis.connect import connect_jobs
from memorybus.redis.keys import Keys
from memorybus.text.redact import describe_error
from redis.exceptions import RedisError

from memorybus_workers.jobs.prefetch import Recaller

_log = logging.getLogger("memorybus")

_BLOCK_SECONDS = 1.0
"""Seconds for which the thread waits for a question before it checks whether it must end."""

OVERTIME_SECONDS = 2
"""Seconds after its time limit in which a call must return; else the process ends, and is replaced.
"""


class PromptAnswerer:
    """Answers one provider's prompts until the process ends.

    Args:
        settings: see `Settings`.
        provider: the provider that answers.
        recaller: makes the answers; only this thread uses it.
        closed: called on the thread when it ends.
        die: ends the process.
    """

    def __init__(
        self,
        settings: Settings,
        provider: str,
        recaller: Recaller,
        closed: Callable[[], None],
        die: Callable[[int], object] = os._exit,
    ) -> None:
        """Prepare; `start` begins to take questions."""
        self._keys = Keys(settings.namespace)
        self._jobs = connect_jobs(settings)
        self._provider = provider
        self._recaller = recaller
        self._closed = closed
        self._die = die
        self._longest = longest_run(settings) + OVERTIME_SECONDS
        self._rng = new_rng()
        self._stop = threading.Event()
        self._waits = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memorybus-prompts", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop: wait for a call that runs, but cut off a wait for questions."""
        self._stop.set()
        if self._waits.is_set():
            self._jobs.connection_pool.disconnect()
        self._thread.join(_BLOCK_SECONDS + OVERTIME_SECONDS)

    def _run(self) -> None:
        logs.bind(provider=self._provider)
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
        self._closed()
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
        watch = threading.Timer(self._longest, self._end_hung_process)
        watch.daemon = True
        watch.start()
        try:
            answer = self._recaller.answer(ask, self._provider)
        finally:
            watch.cancel()
        if answer is not None:
            prompt_asks.send_reply(self._jobs, self._keys, ask, answer)

    def _end_hung_process(self) -> None:
        _log.error("a recall of %s hangs; its process ends", self._provider)
        self._die(1)
