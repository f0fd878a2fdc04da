"""The log as people read it: all partitions in the order in which Redis took the events."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from memorybus.events import Envelope, UnknownEvent
from memorybus.links import connect_redis
from memorybus.log import START, EventLog
from memorybus.logged import LoggedEvent
from memorybus.settings import Settings
from memorybus.surfaces.render import event_name

PAGE = 500
FOLLOW_WAIT = 1.0
"""Seconds a follower blocks before it looks again; bounds how long Ctrl-C takes."""


CANARY_SCOPE = "doctor"
"""Agent and user of the canaries that `memorybus doctor` publishes."""

CANARY_PREFIX = "doctor:"
"""How their sessions' ids begin."""


class Filter(msgspec.Struct, frozen=True):
    """Which events are wanted; None means any.

    Attributes:
        session: the session, or the root of its lineage.
        type: the event's type tag, in any case; UnknownEvent for all that we do not know.
        canaries: with those of `memorybus doctor`; a session asked for by name is shown anyway.
    """

    session: str | None = None
    type: str | None = None
    canaries: bool = False

    def wants(self, event: LoggedEvent) -> bool:
        """Say whether an event passes."""
        envelope = event.envelope
        if self.session is None:
            here = self.canaries or not is_canary(envelope)
        else:
            here = self.session in (envelope.session.id, envelope.session.root)
        return here and (self.type is None or self.type.lower() in _names(envelope))


def _names(envelope: Envelope) -> tuple[str, ...]:
    name = event_name(envelope.event).lower()
    return (name, "unknownevent") if isinstance(envelope.event, UnknownEvent) else (name,)


def is_canary(envelope: Envelope) -> bool:
    """Say whether `memorybus doctor` published an event to see it arrive."""
    scope = envelope.scope
    ours = scope.agent == scope.user == CANARY_SCOPE
    return ours and envelope.session.id.startswith(CANARY_PREFIX)


def checked_log(settings: Settings) -> EventLog:
    """Return the log to look at: another partition count would show half of it. Writes nothing.

    Raises:
        LogError: Redis is away, or the log cannot be used as it is.
    """
    log = EventLog(connect_redis(settings), settings)
    log.check_partitions()
    return log


def everything(log: EventLog, partitions: int) -> Iterator[LoggedEvent]:
    """Return every event of the log in the order of their entries' times."""
    return heapq.merge(*(_partition(log, p) for p in range(partitions)), key=_moment)


def last(events: Iterable[LoggedEvent], limit: int) -> list[LoggedEvent]:
    """Return the last `limit` of `events`, newest last."""
    return list(deque(events, maxlen=limit))


class Places:
    """How far each partition has been read."""

    def __init__(self, partitions: int) -> None:
        """Begin at the beginning."""
        self.after: dict[int, str] = dict.fromkeys(range(partitions), START)

    def noted(self, events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
        """Pass `events` on and note their places."""
        for event in events:
            self.after[event.position.partition] = event.position.entry
            yield event


def follow(log: EventLog, places: Places) -> Iterator[LoggedEvent]:
    """Return events as they come, for ever, from behind `places`."""
    while True:
        news = log.wait(places.after, FOLLOW_WAIT)
        fresh = [event for p in news for event in log.read(p, places.after[p], PAGE)]
        yield from places.noted(sorted(fresh, key=_moment))


def _partition(log: EventLog, partition: int) -> Iterator[LoggedEvent]:
    after = START
    while page := log.read(partition, after, PAGE):
        yield from page
        after = page[-1].position.entry


def _moment(event: LoggedEvent) -> tuple[int, int, int]:
    ms, _, sequence = event.position.entry.partition("-")
    return int(ms), int(sequence), event.position.partition
