"""The history as people read it: all partitions in the order in which Redis took the events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from memorybus.config.settings import Settings
from memorybus.errors import MissingEvent
from memorybus.events import EVENT_TYPES, Envelope, UnknownEvent
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.log.stream import START, EventLog, Head
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis
from memorybus.text.display import event_name

PAGE = 500
FOLLOW_WAIT = 1.0
"""Seconds a follower blocks before it looks again; bounds how long Ctrl-C takes."""


CANARY_SCOPE = "doctor"
"""Agent and user of the canaries that `memorybus doctor` publishes."""

CANARY_PREFIX = "doctor:"
"""How their sessions' ids begin."""


class ListedEvents(msgspec.Struct, frozen=True):
    """Which events are wanted; None means any.

    Attributes:
        session: the session, or the root of its lineage.
        type: the event's type tag, in any case; UnknownEvent for all that we do not know.
        canaries: with those of `memorybus doctor`; a session asked for by name is shown anyway.
    """

    session: str | None = None
    type: str | None = None
    canaries: bool = False

    def query(self) -> Query:
        """Return what asks the history for no less than what passes."""
        lineages = (self.session,) if self.session else ()
        if self.type is None:
            return Query(lineages=lineages)
        known = {kind.__name__.lower(): kind.__name__ for kind in EVENT_TYPES}
        name = known.get(self.type.lower(), UnknownEvent.__name__)
        return Query(lineages=lineages, types=(name, UnknownEvent.__name__))

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


def checked_history(settings: Settings) -> History:
    """Return the history to look at: another partition count would show half. Writes nothing.

    Raises:
        LogError: Redis is away, or the log cannot be used as it is.
    """
    history = History.from_settings(connect_redis(settings), settings)
    history.log.check_partitions()
    return history


def everything(
    history: History, wanted: ListedEvents, unread: list[str] | None = None
) -> Iterator[LoggedEvent]:
    """Return every event that passes, in the order of their entries' times.

    Args:
        history: archive and log.
        wanted: which events.
        unread: if given, what cannot be read is told here, and the rest is read.
    """
    found = history.scan(wanted.query(), damage=unread)
    return (event for event in found if wanted.wants(event))


def newest(
    history: History,
    wanted: ListedEvents,
    limit: int,
    heads: Sequence[Head] | None = None,
    unread: list[str] | None = None,
) -> list[LoggedEvent]:
    """Return the newest events that pass, newest last; reads back no further than it must.

    Args:
        history: archive and log.
        wanted: which events.
        limit: at most so many.
        heads: the ends from which it reads back; the present ones if None.
        unread: if given, what cannot be read is told here, and the rest is read.
    """
    found = history.scan_backward(wanted.query(), heads, damage=unread)
    return list(islice(filter(wanted.wants, found), limit))[::-1]


def event_by_id(history: History, event_id: str, unread: list[str] | None = None) -> LoggedEvent:
    """Return one event, whoever's it is: an operator asks.

    Args:
        history: archive and log.
        event_id: 32 hexadecimal digits.
        unread: if given, what cannot be read is told here, and the rest is read.

    Raises:
        MissingEvent: history holds none of this id.
    """
    wanted = Query(ids=(event_id,))
    found = next(iter(history.scan_backward(wanted, damage=unread)), None)
    if found is None:
        raise MissingEvent(
            f"no event {event_id} in log and archive; `memorybus events ls` shows the newest ids "
            f"with --json"
        )
    return found


class ReadUpTo:
    """How far each partition has been read."""

    def __init__(self, ends: Mapping[int, str]) -> None:
        """Begin behind these entries."""
        self.after = dict(ends)

    @classmethod
    def at(cls, heads: Iterable[Head]) -> "ReadUpTo":
        """Begin behind the ends of partitions."""
        return cls({head.partition: head.entry or START for head in heads})

    def noted(self, events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
        """Pass `events` on and note the places behind the known ones."""
        for event in events:
            position = event.position
            if parse_entry_id(position.entry) > parse_entry_id(self.after[position.partition]):
                self.after[position.partition] = position.entry
            yield event


def follow(log: EventLog, places: ReadUpTo) -> Iterator[LoggedEvent]:
    """Return events as they come, for ever, from behind `places`."""
    while True:
        news = log.wait(places.after, FOLLOW_WAIT)
        fresh = [event for p in news for event in log.read(p, places.after[p], PAGE)]
        places.after |= news  # also past an entry that is not ours
        yield from places.noted(sorted(fresh, key=_moment))


def _moment(event: LoggedEvent) -> tuple[int, int, int]:
    ms, _, sequence = event.position.entry.partition("-")
    return int(ms), int(sequence), event.position.partition
