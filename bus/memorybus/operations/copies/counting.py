"""What a copy would take of the history, what it would leave out, and by which option: counted."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from memorybus.clock import Clock
from memorybus.events import Omitted, ToolCalled, UnknownEvent
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import START
from memorybus.operations.stores import Stores
from memorybus.query.query import EVERYTHING, Query, row_of
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.description import InstanceDescription

TOP = 10
"""Order keys that a plan names, those with the most events."""

_PAGE = 2_000

UNTIL = "until"

_OPTIONS = (
    ("except_session", "except_sessions"),
    ("except_user", "except_users"),
    ("except_agent", "except_agents"),
    ("except_origin", "except_origins"),
)

Tell = Callable[[int, int], None]
"""Receives how many events are read, and of how many."""


class Taking(msgspec.Struct, frozen=True):
    """A copy that would take a part of the history.

    Attributes:
        provider: of which.
        what: what it would be.
        plan: what it takes.
        ends: the last number of each partition that lies before it.
        by_option: whether what its plan leaves out is counted by the option that does so.
    """

    provider: str
    what: InstanceDescription
    plan: Plan
    ends: Mapping[int, int]
    by_option: bool = False


class HistoryCount(msgspec.Struct, frozen=True):
    """What lies before a copy, read through its plan.

    Attributes:
        events: those that it takes.
        without_effect: those of them that its provider does nothing with.
        left_out: the others, by the first reason that holds: ``volatile``, ``filtered``,
            ``retention``, ``forgotten``, ``outside`` for calls of tools that act on the world,
            in place of ``filtered`` each option of a rebuild: ``until``, ``except_session``,
            ``except_user``, ``except_agent``, ``except_origin``, also with 0.
        types: those that it takes, by type.
        keys: the order keys with the most of them.
        distinct_keys: how many order keys there are.
        bytes: the size of what it takes, encoded.
        seconds: how long reading it took here.
    """

    events: int
    without_effect: int
    left_out: dict[str, int]
    types: dict[str, int]
    keys: dict[str, int]
    distinct_keys: int
    bytes: int
    seconds: float

    def applied(self, parked: int) -> int:
        """Return how many events a copy has applied that has passed all, and put some aside."""
        return self.events - parked


def counted(stores: Stores, taking: Taking, tell: Tell, clock: Clock) -> HistoryCount:
    """Read what a copy takes, as its lanes will.

    Args:
        stores: the stores.
        taking: the copy, and its part.
        tell: receives how many events are read.
        clock: time.

    Raises:
        LogError, ArchiveError: the history cannot be read.
    """
    begun = clock.monotonic()
    options = Excepting(taking.plan if taking.by_option else WHOLE)
    left_out: Counter[str] = Counter(dict.fromkeys(options.options, 0))
    types: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    size = done = 0
    total = sum(taking.ends.values())
    for page in _pages(stores, taking):
        for event in page:
            why = options.option(event) or _left_out(event, taking)
            if why:
                left_out[why] += 1
                continue
            types[_type(event)] += 1
            keys[event.envelope.key] += 1
            size += len(msgspec.msgpack.encode(event.envelope))
        done += len(page)
        tell(done, total)
    idle = sum(count for name, count in types.items() if name not in taking.what.handles)
    named = dict(keys.most_common(TOP))
    ordered = dict(types.most_common())
    events = sum(types.values())
    seconds = clock.monotonic() - begun
    return HistoryCount(events, idle, dict(left_out), ordered, named, len(keys), size, seconds)


def _pages(stores: Stores, taking: Taking) -> Iterator[Sequence[LoggedEvent]]:
    """Yield what lies before a copy; whole where each option shall be asked."""
    plan = WHOLE if taking.by_option else taking.plan
    for partition, end in taking.ends.items():
        entry, n = START, 0
        while n < end:
            page = stores.history.read(partition, entry, _PAGE, after_n=n, plan=plan).events
            if not page:
                break
            entry, n = page[-1].position.entry, page[-1].position.n
            yield [event for event in page if event.position.n <= end]


def _left_out(event: LoggedEvent, taking: Taking) -> str:
    said = event.envelope.event
    if isinstance(said, Omitted):
        return said.why
    if isinstance(said, ToolCalled) and said.provider == taking.provider:
        return "outside" if said.tool in taking.what.outside_tools else ""
    return ""


def _type(event: LoggedEvent) -> str:
    said = event.envelope.event
    return said.name if isinstance(said, UnknownEvent) else type(said).__name__


class Excepting:
    """Finds the option of a rebuild that leaves an event out.

    Attributes:
        options: those that the plan has, in the order in which they are asked.
    """

    def __init__(self, plan: Plan) -> None:
        """Make a query of each option of the plan."""
        self._plan = plan
        self._queries: Mapping[str, Query] = {
            option: msgspec.structs.replace(EVERYTHING, **{field: words})
            for option, field in _OPTIONS
            if (words := getattr(plan.query, field))
        }
        self.options = (*((UNTIL,) if plan.spans else ()), *self._queries)

    def option(self, event: LoggedEvent) -> str:
        """Return the first option that leaves an event out, "" if none does."""
        where = event.position
        if not self._plan.takes(where.partition, where.n):
            return UNTIL
        if not self._queries or isinstance(event.envelope.event, Omitted):
            return ""
        row = row_of(event.envelope)
        return next((o for o, query in self._queries.items() if not query.wants(row)), "")


def joined(query: Query, more: Query) -> Query:
    """Return a query that leaves out what either of two does."""
    words = {
        field: tuple(dict.fromkeys(getattr(query, field) + getattr(more, field)))
        for _, field in _OPTIONS
    }
    return msgspec.structs.replace(more, **words)
