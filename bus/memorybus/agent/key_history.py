"""Reads back what was published under one order key: for integrations that keep their state there.

Reading goes from the newest event backward, in one partition, and stops at what was read before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from memorybus.errors import LogUnavailable
from memorybus.events import Envelope, Scope, SessionSwitched
from memorybus.redis.keys import partition_of

if TYPE_CHECKING:
    from memorybus.agent.client import MemoryBus
    from memorybus.history.history import History
    from memorybus.query.query import Query


class KeyHistory:
    """The standing events of one order key and owner. Use from one thread at a time.

    Args:
        bus: what this process has published with it is read, too.
        key: the order key.
        scope: only events of this agent, person and workspace are read.
        types: only events of these types, as `Event` spells them, beside undos.
        begins: whether nothing before an event is wanted: reading stops there.
        sessions: only events of these sessions, of all if there are none. Segments of the archive
            without them are not opened, whoever else is in the partition.
    """

    def __init__(
        self,
        bus: MemoryBus,
        key: str,
        scope: Scope,
        types: tuple[str, ...],
        begins: Callable[[Envelope], bool] = lambda _: False,
        sessions: tuple[str, ...] = (),
    ) -> None:
        self._bus = bus
        self._key = key
        self._scope = scope
        self._types = types
        self._begins = begins
        self._sessions = sessions
        self._events: list[Envelope] = []
        self._upto = 0
        self._forgotten: tuple[Query, ...] = ()

    def events(self, timeout: float = 5.0) -> list[Envelope]:
        """Return the events, the oldest first, without those that were undone or forgotten.

        Args:
            timeout: the most seconds to wait until Redis has what this process published.

        Raises:
            LogUnavailable: Redis is away, or does not take the events in time.
            LogError: the history cannot be read.
        """
        if not self._bus.flush("logged", timeout):
            why = self._bus.problem or f"Redis did not take all events within {timeout} s"
            raise LogUnavailable(f"the history cannot be read: {why}; try again")
        self._read_newer()
        undone = {
            event_id
            for envelope in self._events
            if isinstance(envelope.event, SessionSwitched)
            for event_id in envelope.event.retracted
        }
        return [envelope for envelope in self._events if envelope.id not in undone]

    def _read_newer(self) -> None:
        from memorybus.history.history import History  # an agent that only publishes needs no Redis
        from memorybus.redis.connect import connect_redis

        settings = self._bus.settings
        redis = connect_redis(settings)
        with closing(redis), closing(History.from_settings(redis, settings)) as history:
            history.log.check_partitions()
            self._continue(history)

    def _continue(self, history: History) -> None:
        """Read what is new; all of it again if the log was set back or somebody was forgotten."""
        partition = partition_of(self._key, self._bus.settings.partitions)
        head = history.log.heads()[partition]
        forgotten = history.forgotten_queries()
        if head.n < self._upto or forgotten != self._forgotten:
            self._events, self._upto = [], 0
        newer: list[Envelope] = []
        for logged in history.read_backward(self._query(), heads=[head]):
            if logged.position.n <= self._upto:
                break
            if logged.envelope.key == self._key:
                newer.append(logged.envelope)
                if self._begins(logged.envelope):
                    self._events = []
                    break
        self._events += reversed(newer)
        self._upto, self._forgotten = head.n, forgotten

    def _query(self) -> Query:
        from memorybus.query.query import Query

        return Query(
            agents=(self._scope.agent,),
            users=(self._scope.user,),
            workspaces=(self._scope.workspace,),
            sessions=self._sessions,
            types=(*self._types, SessionSwitched.__name__),
        )
