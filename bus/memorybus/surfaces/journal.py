"""The log as people read it: all partitions in the order in which Redis took the events."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from memorybus.log import START, EventLog, LoggedEvent
from memorybus.surfaces.render import event_name

PAGE = 500
FOLLOW_WAIT = 1.0
"""Seconds a follower blocks before it looks again; bounds how long Ctrl-C takes."""


class Filter(msgspec.Struct, frozen=True):
    """Which events are wanted; None means any.

    Attributes:
        session: the session, or the root of its lineage.
        type: the event's type tag, in any case.
    """

    session: str | None = None
    type: str | None = None

    def wants(self, event: LoggedEvent) -> bool:
        """Say whether an event passes."""
        session = event.envelope.session
        if self.session is not None and self.session not in (session.id, session.root):
            return False
        name = event_name(event.envelope.event)
        return self.type is None or name.lower() == self.type.lower()


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
