"""A worker's watch over the log: losses, and what threatens it, are logged within seconds.

Every examination stands alone (`memorybus.health.log_health`). The watch remembers earlier ones, so
it also notices that the log is another one, or went back so far that producers may no longer have
the lost events. It writes this to Redis, so that `status` and `doctor` know it too.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
from memorybus.clock import Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import LogError
from memorybus.health import findings
from memorybus.health.finding import Finding
from memorybus.health.log_health import Examiner, LogHealth
from memorybus.log.continuity import NO_EVENT_SEEN, Gap, PartitionView, find_lost_tail
from memorybus.log.entry import Place
from memorybus.log.losses import Losses, lost_gap
from memorybus.log.stream import EventLog
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.text.display import iso
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.logs import RateLimitedWarning

_log = logging.getLogger("memorybus")
POLL_SECONDS = 5.0
REMINDER_SECONDS = 60.0  # seconds after which a gap that goes on growing is logged again


_Subject: TypeAlias = tuple[str, str, str]


class _LoggedAlarm(msgspec.Struct, frozen=True):
    """An alarm as it was logged, and when."""

    at: float
    alarm: Finding


class LogWatch:
    """Watches one log. Belongs to one thread."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.alarms: tuple[Finding, ...] = ()  # what was wrong at the last look
        self._settings = settings
        self._clock = clock
        self._keys = Keys(settings.namespace)
        self._next = float("-inf")
        self._unwatched = RateLimitedWarning("the log cannot be watched: %s", clock)
        self._logged: dict[_Subject, _LoggedAlarm] = {}
        self._log_id: str | None = None
        self._views: Mapping[int, PartitionView] = {}
        self._unwritten: list[Gap] = []
        self._settled: dict[int, Place] = {}
        self._settling: tuple[float, dict[int, Place]] = (float("-inf"), {})
        self._examiner: Examiner | None = None

    def poll(self, redis: Redis) -> None:
        """Examine the log, if it is time. If Redis is away, log a warning; no error is raised."""
        if self._clock.monotonic() < self._next:
            return
        self._next = self._clock.monotonic() + POLL_SECONDS
        try:
            self._examine(redis)
        except LogError as error:
            self._unwatched.warn(error)
        except (RedisError, OSError) as error:
            self._unwatched.warn(translate_redis_error(error, redacted(self._settings.redis_url)))

    def _examine(self, redis: Redis) -> None:
        self._examiner = self._examiner or Examiner(redis, self._settings)
        health = self._examiner.examine(self._settled)
        views = {partition: state.view for partition, state in self._examiner.states.items()}
        self._unwritten += self._find_losses(health.continuity.log, views)
        self._views = views
        self._log_alarms([*health.alarms, *self._unwritten_alarms(health)])
        Losses(redis, self._keys).note(self._unwritten)  # what fails now is written by a later call
        self._unwritten = []
        if health.continuity.log is None:
            EventLog(redis, self._settings).open()  # the record of the log was lost with the log

    # -- comparison with earlier looks ------------------------------------------------------------

    def _find_losses(self, log: str | None, views: Mapping[int, PartitionView]) -> list[Gap]:
        """Return what was lost since the last look, and remember this one."""
        now, at = iso(self._clock.now_ms()), self._clock.monotonic()
        before, self._log_id = self._log_id, log
        if before not in (None, log):
            self._forget()
            gaps = _held_numbers(self._views) or [NO_EVENT_SEEN]
            return [lost_gap("wiped", before, gap, now) for gap in gaps]
        lost = [
            lost_gap("tail", log, gap, now)
            for partition, place in self._settled.items()
            if partition in views and (gap := find_lost_tail(partition, views[partition], place))
        ]
        if lost:
            self._forget()
        self._keep_settled(at, views)
        return lost

    def _keep_settled(self, now: float, views: Mapping[int, PartitionView]) -> None:
        """Keep places that have been in the log for longer than a spool keeps what it sent."""
        since, places = self._settling
        if now - since >= self._settings.spool_keep + POLL_SECONDS:
            self._settled = places
            self._settling = (now, {p: view.last for p, view in views.items() if view.last})

    def _forget(self) -> None:
        self._settled = {}
        self._settling = (float("-inf"), {})

    def _unwritten_alarms(self, health: LogHealth) -> Iterator[Finding]:
        written = {gap.record for gap in health.continuity.gaps}
        unwritten = [gap for gap in self._unwritten if gap.record not in written]
        return findings.gap_alarms(unwritten, self._keys)

    # -- logging ----------------------------------------------------------------------------------

    def _log_alarms(self, found: Sequence[Finding]) -> None:
        """Log new alarms and alarms that are over; a growing gap is logged again once a minute."""
        now = self._clock.monotonic()
        current = {_subject(alarm): alarm for alarm in found}
        for key, alarm in current.items():
            if _is_news(alarm, self._logged.get(key), now):
                self._logged[key] = _LoggedAlarm(now, alarm)
                _log_alarm(alarm)
        for key in self._logged.keys() - current.keys():
            _log.info("no longer: %s", self._logged.pop(key).alarm.text)
        self.alarms = tuple(current.values())


def _subject(alarm: Finding) -> _Subject:
    return (alarm.code, alarm.subject, alarm.severity)


def _is_news(alarm: Finding, logged: _LoggedAlarm | None, now: float) -> bool:
    if logged is None:
        return True
    grown = alarm.code == "data_loss" and alarm.text != logged.alarm.text
    return grown and now - logged.at >= REMINDER_SECONDS


def _log_alarm(alarm: Finding) -> None:
    level = logging.ERROR if alarm.severity == "critical" else logging.WARNING
    kind = "DATA LOSS: " if alarm.code == "data_loss" else ""
    _log.log(level, "%s%s; %s", kind, alarm.text, alarm.remedy)


def _held_numbers(views: Mapping[int, PartitionView]) -> list[Gap]:
    return [
        Gap(partition, view.first.n, view.n, view.n - view.first.n + 1)
        for partition, view in views.items()
        if view.first is not None and view.n >= view.first.n
    ]
