"""A thread in the supervisor of workers that looks at the bus and notifies people.

Only one such thread at a time reports on the bus: the one that has the task, which Redis assigns
(`registry.notifier_lease`). If Redis is away, each host reports that by itself.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from redis.exceptions import RedisError

from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.wakeup import StopSignal
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.health.finding import Finding
from memorybus.health.monitor import read_status, spool_status
from memorybus.health.services import findings_of, redis_away_finding
from memorybus.ids import new_id, new_rng
from memorybus.notify.channels import Channel, channels_of, sender_of
from memorybus.notify.host_note import HostNote
from memorybus.notify.reporter import Reporter
from memorybus.redis.connect import connect_redis, translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.registry.notifier_lease import NotifierLease

_log = logging.getLogger("memorybus")

_MAX_LOOK_SECONDS: Final = 5.0
_MIN_LOOK_SECONDS: Final = 1.0
"""Seconds between two looks, at most and at least."""

_SENDING_POLL_SECONDS: Final = 0.1
"""Seconds between two checks of whether a notice has arrived."""

_CLOSE_SECONDS: Final = 2.0
"""Seconds for which `close` waits for a notice that is being sent."""

_JOIN_SECONDS: Final = 5.0


class Notifier:
    """Looks at the bus and notifies people. Belongs to one thread.

    Args:
        settings: see `Settings`.
        channels: the channels to people.
        clock: time.
    """

    def __init__(
        self, settings: Settings, channels: Mapping[str, Channel], clock: Clock = SYSTEM
    ) -> None:
        """Look at nothing yet."""
        self._settings = settings
        self._clock = clock
        self._redis = connect_redis(settings)
        self._last_error = ""
        self._next = float("-inf")
        self._ended = (False, False)
        self._every = min(_MAX_LOOK_SECONDS, max(_MIN_LOOK_SECONDS, settings.notify.after / 4))
        rules, sender, rng = settings.notify, sender_of(settings), new_rng()
        lease = NotifierLease(self._redis, Keys(settings.namespace), new_id())
        here = HostNote(settings.notice_path)
        self._bus = Reporter(rules, channels, sender, lease, clock, rng)
        self._host = Reporter(rules, channels, sender, here, clock, rng)

    @property
    def pause(self) -> float:
        """Seconds until the next `poll`."""
        sending = self._bus.busy or self._host.busy
        return _SENDING_POLL_SECONDS if sending else max(0.0, self._next - self._clock.monotonic())

    def poll(self) -> None:
        """Report what is wrong, if it is time to look or a notice was sent; log errors."""
        if not self._has_news() and self._clock.monotonic() < self._next:
            return
        self._next = self._clock.monotonic() + self._every
        try:
            away = self._look_at_bus()
            self._host.report(lambda: away)
            self._last_error = ""
        except (MemoryBusError, OSError) as error:
            if str(error) != self._last_error:
                _log.warning("people cannot be notified of findings: %s", error)
            self._last_error = str(error)

    def _has_news(self) -> bool:
        """Say whether the sending of a notice has ended since the last call."""
        before, self._ended = self._ended, (self._bus.has_ended(), self._host.has_ended())
        return self._ended != before and any(self._ended)

    def close(self) -> None:
        """Finish the notices that are being sent, and let another process take the task over."""
        for reporter in (self._bus, self._host):
            with suppress(RedisError, OSError):
                reporter.close(_CLOSE_SECONDS)
        self._redis.close()

    def _look_at_bus(self) -> list[Finding]:
        """Report on the bus if this process has the task.

        Returns:
            The finding that Redis is away, if it is.

        Raises:
            LogError: Redis answers, but the log cannot be read.
        """
        try:
            with self._translated():
                self._bus.report(self._findings)
        except LogUnavailable as error:
            return [redis_away_finding(error, spool_status(self._settings).events)]
        return []

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (RedisError, OSError) as error:
            raise translate_redis_error(error, redacted(self._settings.redis_url)) from error

    def _findings(self) -> Sequence[Finding]:
        status = read_status(self._settings)
        return findings_of(status, self._settings.providers, self._clock.now_ms())


@contextmanager
def run_notifier(settings: Settings) -> Iterator[None]:
    """Notify people from a separate thread while the block runs, if any channel is configured.

    Raises:
        ConfigError: a variable that the settings name is not set, or holds no address.
    """
    channels = channels_of(settings)
    if not channels:
        yield
        return
    stop = StopSignal()
    thread = threading.Thread(
        target=_run, args=(settings, channels, stop), name="memorybus-notify", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_JOIN_SECONDS)


def _run(settings: Settings, channels: Mapping[str, Channel], stop: StopSignal) -> None:
    notifier = Notifier(settings, channels)
    try:
        while not stop.is_set():
            notifier.poll()
            stop.wait(notifier.pause)
    finally:
        notifier.close()
