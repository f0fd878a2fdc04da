"""The tail: one blocking read for all partitions of a worker, which wakes the hosts with news."""

import logging
import random
import threading
from collections.abc import Callable

from memorybus.errors import LogError
from memorybus.links import connect_redis
from memorybus.log import EventLog
from memorybus.retrying import backoff
from memorybus.settings import Settings

_log = logging.getLogger("memorybus")

_BLOCK = 1.0
_BREATHE = 0.001
"""Seconds between two looks while events pour in: lanes read in batches anyway."""


class Tail:
    """Watches the log on a thread of its own.

    Args:
        settings: see `Settings`.
        rng: jitter.
        tell: called with the partitions that have news.
    """

    def __init__(
        self, settings: Settings, rng: random.Random, tell: Callable[[set[int]], None]
    ) -> None:
        """Prepare; `start` begins."""
        self._settings = settings
        self._rng = rng
        self._tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memorybus-tail", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(_BLOCK * 3)

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            redis = connect_redis(self._settings, timeout=_BLOCK * 5)
            try:
                log = EventLog(redis, self._settings)
                seen = {head.partition: head.entry for head in log.heads()}
                self._tell(set(seen))  # what came while nobody looked
                failures = 0
                self._follow(log, seen)
            except LogError as error:
                if failures == 0:
                    _log.warning("tail: %s; lanes look by themselves until it is back", error)
                self._stop.wait(backoff(failures, self._rng))
                failures += 1
            finally:
                redis.close()

    def _follow(self, log: EventLog, seen: dict[int, str]) -> None:
        while not self._stop.is_set():
            news = log.wait(seen, _BLOCK)
            if not news:
                continue
            # First the ends, then the word: what lies before an end is read after the word.
            for partition in news:
                seen[partition] = log.end(partition)
            self._tell(set(news))
            self._stop.wait(_BREATHE)
