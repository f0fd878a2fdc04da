"""The tail: one blocking read of all partitions wakes a worker's hosts when events arrive."""

import logging
import random
import threading
from collections.abc import Callable

from memorybus.clock import Clock
from memorybus.concurrency.backoff import backoff
from memorybus.config.settings import Settings
from memorybus.errors import LogError
from memorybus.log.stream import FOREIGN, START, EventLog
from memorybus.redis.connect import connect_redis
from redis import Redis

_log = logging.getLogger("memorybus")
_BLOCK_SECONDS = 2.0
_ANSWER_SECONDS = 3.0  # seconds that an answer may take beyond the time for which a read blocks
_BLIND_WAKE_SECONDS = 0.5  # seconds between two wake-ups of all lanes while the tail fails
_RECHECK_SECONDS = 5.0
"""Seconds between looks at the ends of all partitions, in case a blocking read missed something."""

_MIN_READ_INTERVAL_SECONDS = 0.001
"""Seconds between two reads while events pour in: lanes read in batches anyway."""


class Tail:
    """Watches the log on a thread of its own."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        rng: random.Random,
        tell: Callable[[set[int]], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._tell = tell
        self._stop = threading.Event()
        self._redis: Redis | None = None
        self._thread = threading.Thread(target=self._run, name="memorybus-tail", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a read that waits for news is cut off."""
        self._stop.set()
        if self._redis is not None:
            self._redis.connection_pool.disconnect()
        self._thread.join(_BLOCK_SECONDS * 3)

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                self._watch()
                failures = 0
            except Exception as error:
                if failures == 0 and not self._stop.is_set():
                    trace = None if isinstance(error, LogError) else error
                    _log.warning("tail: %s; lanes look every half second", error, exc_info=trace)
                self._announce_blindly(backoff(failures, self._rng))
                failures += 1

    def _announce_blindly(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0 and not self._stop.is_set():
            self._tell(set(range(self._settings.partitions)))
            self._stop.wait(min(_BLIND_WAKE_SECONDS, left))

    def _watch(self) -> None:
        redis = self._redis = connect_redis(
            self._settings, timeout=_BLOCK_SECONDS + _ANSWER_SECONDS
        )
        try:
            log = EventLog(redis, self._settings, self._clock)
            seen: dict[int, str] = {}
            while not self._stop.is_set():
                ends = _ends(log)
                # At first this finds what came before we watched, later what a read has missed.
                news = {p for p, end in ends.items() if seen.get(p, START) != end}
                seen = ends
                if news:
                    self._tell(news)
                self._follow(log, seen)
        finally:
            redis.close()

    def _follow(self, log: EventLog, seen: dict[int, str]) -> None:
        """Watch for a while; then the caller reads all ends again, even those of foreign keys."""
        until = self._clock.monotonic() + _RECHECK_SECONDS
        while not self._stop.is_set() and self._clock.monotonic() < until:
            news = log.wait(seen, _BLOCK_SECONDS)
            if not news:
                continue
            # Note the ends before waking the lanes, which then read everything up to them.
            for partition in news:
                seen[partition] = log.last_entry(partition)
            self._tell(set(news))
            self._stop.wait(_MIN_READ_INTERVAL_SECONDS)


def _ends(log: EventLog) -> dict[int, str]:
    return {head.partition: head.entry for head in log.heads() if head.entry != FOREIGN}
