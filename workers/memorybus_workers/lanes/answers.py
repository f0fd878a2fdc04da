"""Answers callers that wait for the outcome of their event, as the owner of a lane (G9).

An answer is written after the event took effect, so no crash undoes what was answered. After a
crash in between, the event is applied and the caller gets no answer. Of a provider and its copies
only one instance answers, in the provider's name, so a replay answers nobody. A call that is older
than the life of a reply is not answered. When a provider forgets something, the results that were
recalled from it before are made unreadable.
"""

import logging

from memorybus.errors import Unavailable
from memorybus.events import SessionSwitched, ToolCalled
from memorybus.jobs.waiting import (
    REPLY_TTL_SECONDS,
    Reply,
    is_awaited,
    reply_to,
    write_reply,
)
from memorybus.log.entry import LoggedEvent, entry_ms
from memorybus.recall import retractions
from memorybus.redis.facts import read_server_ms
from memorybus.redis.keys import Keys
from memorybus_providers.base import HookContext
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.lanes.context import InstanceContext

_log = logging.getLogger("memorybus")


class Answers:
    """Answers for one provider instance. Belongs to its thread; never raises an error of Redis."""

    def __init__(self, redis: Redis, instance: InstanceContext) -> None:
        self._redis = redis
        self._instance = instance
        self._settings = instance.worker.settings
        self._keys = Keys(self._settings.namespace)

    def answer_applied(self, event: LoggedEvent, text: str | None) -> None:
        """Answer for an event whose effect is committed; `text` is the reply of its hook."""
        if text is not None and isinstance(event.envelope.event, SessionSwitched):
            self._forget_warm_results(event)
        elif text is not None and self._is_awaited(event):
            self._instance.crash("lane.before_reply")
            most = self._settings.reply_max_bytes
            self._put(event, reply_to(event.envelope.event, text, most))

    def answer_refused(self, event: LoggedEvent, why: str) -> None:
        """Answer for an event that is parked; `why` is masked and bounded."""
        if self._is_awaited(event):
            self._put(event, Reply(error=why))

    def _forget_warm_results(self, event: LoggedEvent) -> None:
        """Make results unreadable that were recalled while the provider forgot something."""
        if self._instance.role.answering:
            scope, provider = event.envelope.scope, self._instance.role.provider
            try:
                retractions.change_mark(self._redis, self._settings, scope, provider)
            except (RedisError, OSError) as error:
                _log.warning("event %s: warm results stay: %s", event.envelope.id, error)

    def _is_awaited(self, event: LoggedEvent) -> bool:
        asked = event.envelope.event
        elsewhere = isinstance(asked, ToolCalled) and asked.provider != self._instance.role.provider
        return self._instance.role.answering and is_awaited(asked) and not elsewhere

    def _put(self, event: LoggedEvent, reply: Reply) -> None:
        position = event.position
        try:
            if self._age_ms(position.entry) <= REPLY_TTL_SECONDS * 1000:
                key = self._keys.reply(position.partition, event.envelope.id)
                write_reply(self._redis, key, self._instance.role.provider, reply)
        except (RedisError, OSError) as error:
            _log.debug("event %s: the reply could not be written: %s", event.envelope.id, error)

    def _age_ms(self, entry: str) -> int:
        return read_server_ms(self._redis) - entry_ms(entry)


def forget_warm_results(instance: InstanceContext, context: HookContext) -> None:
    """Make results unreadable that were recalled before a provider forgets, on any thread.

    It is called before the provider forgets, and results are made unreadable again afterwards: so
    they are even if the worker dies in between.
    """
    try:
        settings, provider = instance.worker.settings, instance.role.provider
        retractions.change_mark_now(settings, context.scope, provider)
    except (RedisError, OSError) as error:
        raise Unavailable(f"Redis is away: {error}") from error
