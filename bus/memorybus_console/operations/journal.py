"""Reads the history for people: all partitions, in the order in which Redis took the events."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec
from memorybus.archive.tombstones import DamageHandler
from memorybus.config.settings import Settings
from memorybus.errors import MissingEvent
from memorybus.events import (
    EVENT_TYPES,
    Envelope,
    SessionSwitched,
    TurnCompleted,
    UnknownEvent,
)
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.log.stream import START, EventLog, Head
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis
from memorybus.text.display import event_name

PAGE = 500
FOLLOW_WAIT = 1.0
"""Seconds that a follower blocks before it reads again; bounds how long Ctrl-C takes."""


CANARY_SCOPE = "doctor"  # agent and user of the canaries that `memorybus doctor` publishes

CANARY_PREFIX = "doctor:"  # how the ids of the canaries' sessions begin


class EventSelection(msgspec.Struct, frozen=True):
    """Which events are wanted; None means any.

    Attributes:
        canaries: whether canaries of `memorybus doctor` are included; a session that is named is
            included anyway.
    """

    session: str | None = None
    type: str | None = None  # the event's type tag, in any case; UnknownEvent for all unknown types
    canaries: bool = False

    def query(self) -> Query:
        """Return a query for the history that finds at least every wanted event."""
        lineages = (self.session,) if self.session else ()
        if self.type is None:
            return Query(lineages=lineages)
        kinds = {kind.__name__.lower(): kind.__name__ for kind in EVENT_TYPES}
        name = kinds.get(self.type.lower(), UnknownEvent.__name__)
        return Query(lineages=lineages, types=(name, UnknownEvent.__name__))

    def wants(self, event: LoggedEvent) -> bool:
        """Return whether an event is wanted."""
        envelope = event.envelope
        if self.session is None:
            here = self.canaries or not is_canary(envelope)
        else:
            here = self.session in (envelope.session.id, envelope.session.root)
        return here and (self.type is None or self.type.lower() in _type_names(envelope))


def _type_names(envelope: Envelope) -> tuple[str, ...]:
    name = event_name(envelope.event).lower()
    return (name, "unknownevent") if isinstance(envelope.event, UnknownEvent) else (name,)


def is_canary(envelope: Envelope) -> bool:
    """Return whether an event is a canary of `memorybus doctor`."""
    scope = envelope.scope
    ours = scope.agent == scope.user == CANARY_SCOPE
    return ours and envelope.session.id.startswith(CANARY_PREFIX)


def open_history(settings: Settings) -> History:
    """Return the history after checking its partition count. Writes nothing."""
    history = History.from_settings(connect_redis(settings), settings)
    history.log.check_partitions()
    return history


def scan_events(
    history: History, selection: EventSelection, unread: list[str] | None = None
) -> Iterator[LoggedEvent]:
    """Return every wanted event, in the order in which Redis took them.

    Args:
        unread: if given, gets a text for each part that cannot be read; the rest is read.
    """
    events = history.scan(selection.query(), damage=DamageHandler(unread))
    return (event for event in events if selection.wants(event))


def newest_events(
    history: History,
    selection: EventSelection,
    limit: int,
    heads: Sequence[Head] | None = None,
    unread: list[str] | None = None,
) -> list[LoggedEvent]:
    """Return the newest wanted events, newest last; read back no further than necessary.

    Args:
        heads: the ends of the partitions from which it reads back; the present ones if None.
        unread: if given, gets a text for each part that cannot be read; the rest is read.
    """
    events = history.scan_backward(selection.query(), heads, damage=DamageHandler(unread))
    newest_forms = without_older_forms(events)
    return list(islice(filter(selection.wants, newest_forms), limit))[::-1]


def without_older_forms(
    newest_first: Iterable[LoggedEvent], older: Collection[str] = ()
) -> Iterator[LoggedEvent]:
    """Yield events without the turns for which an import has published a newer form.

    Args:
        newest_first: the events, so that each newer form comes before the older one.
    """
    hidden = set(older)
    for logged in newest_first:
        event = logged.envelope.event
        if isinstance(event, TurnCompleted) and event.replaces:
            hidden.add(event.replaces)
        if logged.envelope.id not in hidden:
            yield logged


def older_forms(history: History, query: Query) -> frozenset[str]:
    """Return the ids of the turns for which an import has published a newer form.

    A rewind takes each of them back: only where there are rewinds, all turns are read.

    Args:
        query: whose events are meant; the query's types and ids do not count.
    """
    owners = msgspec.structs.replace(query, ids=(), upto=0, types=(SessionSwitched.__name__,))
    switches = (event.envelope.event for event in history.scan(owners))
    if not any(isinstance(switch, SessionSwitched) and switch.retracted for switch in switches):
        return frozenset()
    turns = msgspec.structs.replace(owners, types=(TurnCompleted.__name__,))
    events = (event.envelope.event for event in history.scan(turns))
    return frozenset(event.replaces for event in events if isinstance(event, TurnCompleted)) - {""}


def event_by_id(history: History, event_id: str, unread: list[str] | None = None) -> LoggedEvent:
    """Return one event by its id, of any person: only operators may call this.

    Args:
        event_id: 32 hexadecimal digits.
        unread: if given, gets a text for each part that cannot be read; the rest is read.

    Raises:
        MissingEvent: the history holds no event of this id.
    """
    query = Query(ids=(event_id,))
    event = next(iter(history.scan_backward(query, damage=DamageHandler(unread))), None)
    if event is None:
        raise MissingEvent(
            f"no event {event_id} in log and archive; `memorybus events ls` shows the newest ids "
            f"with --json"
        )
    return event


class ReadPositions:
    """How far each partition has been read: the entry after which reading continues."""

    def __init__(self, ends: Mapping[int, str]) -> None:
        self.after = dict(ends)

    @classmethod
    def behind_heads(cls, heads: Iterable[Head]) -> "ReadPositions":
        """Begin at the present ends of the partitions."""
        return cls({head.partition: head.entry or START for head in heads})

    def note_read(self, events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
        """Pass `events` on, and note their positions as read."""
        for event in events:
            position = event.position
            if parse_entry_id(position.entry) > parse_entry_id(self.after[position.partition]):
                self.after[position.partition] = position.entry
            yield event


def follow_log(log: EventLog, places: ReadPositions) -> Iterator[LoggedEvent]:
    """Yield new events as they arrive, without an end, beginning after `places`."""
    while True:
        yield from read_new(log, places)


def read_new(log: EventLog, places: ReadPositions) -> Iterator[LoggedEvent]:
    """Wait a moment for events behind `places`, and yield those that came."""
    news = log.wait(places.after, FOLLOW_WAIT)
    fresh = [event for p in news for event in log.read(p, places.after[p], PAGE)]
    places.after |= news  # this also passes entries that memorybus did not write
    yield from places.note_read(sorted(fresh, key=_log_order))


def _log_order(event: LoggedEvent) -> tuple[int, int, int]:
    return *parse_entry_id(event.position.entry), event.position.partition
