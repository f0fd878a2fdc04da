"""Counts what a copy would take of the history, what it would leave out, and by which option."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from memorybus.clock import Clock
from memorybus.events import Omitted, ToolCalled, UnknownEvent
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import START
from memorybus.processes.reports import InstanceDescription
from memorybus.query.query import EVERYTHING, Query, row_of
from memorybus.query.ranges import WHOLE, Plan

from memorybus_console.operations.stores import Stores

MAX_NAMED_KEYS = 10
"""How many order keys a count names: those with the most events."""

_PAGE = 2_000

UNTIL = "until"

_OPTIONS = (
    ("except_session", "except_sessions"),
    ("except_user", "except_users"),
    ("except_agent", "except_agents"),
    ("except_origin", "except_origins"),
)

ReportRead = Callable[[int, int], None]
"""Receives how many events are read, and how many there are."""


class CountRequest(msgspec.Struct, frozen=True):
    """What is to be counted: the part of the history that a copy would take.

    Attributes:
        provider: the provider of which a copy would be made.
        what: the description of the copy.
        plan: what the copy takes.
        ends: by partition, the last number that is counted.
        by_option: whether an event that the plan leaves out is counted under the option of the
            rebuild that leaves it out.
    """

    provider: str
    what: InstanceDescription
    plan: Plan
    ends: Mapping[int, int]
    by_option: bool = False


class HistoryCount(msgspec.Struct, frozen=True):
    """How much of the history a copy takes by its plan.

    Attributes:
        events: events that it takes.
        without_effect: how many of these events have no effect on its provider.
        left_out: the other events, by the first reason that applies: ``volatile``, ``filtered``,
            ``retention``, ``forgotten``, or ``outside`` for calls of tools that act on the world.
            A rebuild has, in place of ``filtered``, each of its options, also with 0: ``until``,
            ``except_session``, ``except_user``, ``except_agent``, ``except_origin``.
        types: the events that it takes, by type.
        keys: the order keys with the most of these events.
        distinct_keys: how many order keys these events have.
        bytes: the encoded size of these events.
        seconds: how long it took to read them here.
    """

    events: int
    without_effect: int
    left_out: dict[str, int]
    types: dict[str, int]
    keys: dict[str, int]
    distinct_keys: int
    bytes: int
    seconds: float

    def applied_count(self, parked: int) -> int:
        """Return how many events a copy has applied once it has passed all and parked some."""
        return self.events - parked


def count_history(
    stores: Stores, request: CountRequest, tell: ReportRead, clock: Clock
) -> HistoryCount:
    """Read the history as a copy's lanes will, and count what it takes and leaves out.

    Args:
        stores: the stores.
        request: the copy and its plan.
        tell: receives how many events are read.
        clock: time.

    Raises:
        LogError, ArchiveError: the history cannot be read.
    """
    begun = clock.monotonic()
    options = ExclusionOptions(request.plan if request.by_option else WHOLE)
    left_out: Counter[str] = Counter(dict.fromkeys(options.options, 0))
    types: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    size = done = 0
    total = sum(request.ends.values())
    for page in _read_pages(stores, request):
        for event in page:
            why = options.option_excluding(event) or _omission_reason(event, request)
            if why:
                left_out[why] += 1
                continue
            types[_type_name(event)] += 1
            keys[event.envelope.key] += 1
            size += len(msgspec.msgpack.encode(event.envelope))
        done += len(page)
        tell(done, total)
    idle = sum(count for name, count in types.items() if name not in request.what.handles)
    named = dict(keys.most_common(MAX_NAMED_KEYS))
    ordered = dict(types.most_common())
    events = sum(types.values())
    seconds = clock.monotonic() - begun
    return HistoryCount(events, idle, dict(left_out), ordered, named, len(keys), size, seconds)


def _read_pages(stores: Stores, request: CountRequest) -> Iterator[Sequence[LoggedEvent]]:
    """Yield the history up to the requested ends, by the plan; unfiltered to count by option."""
    plan = WHOLE if request.by_option else request.plan
    for partition, end in request.ends.items():
        entry, n = START, 0
        while n < end:
            page = stores.history.read(partition, entry, _PAGE, after_n=n, plan=plan).events
            if not page:
                break
            entry, n = page[-1].position.entry, page[-1].position.n
            yield [event for event in page if event.position.n <= end]


def _omission_reason(event: LoggedEvent, request: CountRequest) -> str:
    body = event.envelope.event
    if isinstance(body, Omitted):
        return body.why
    if isinstance(body, ToolCalled) and body.provider == request.provider:
        return "outside" if body.tool in request.what.outside_tools else ""
    return ""


def _type_name(event: LoggedEvent) -> str:
    body = event.envelope.event
    return body.name if isinstance(body, UnknownEvent) else type(body).__name__


class ExclusionOptions:
    """The options of a rebuild that exclude events; finds the one that excludes an event.

    Attributes:
        options: the options that the plan uses, in the order in which they are tried.
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

    def option_excluding(self, event: LoggedEvent) -> str:
        """Return the first option that excludes an event; "" if none does."""
        where = event.position
        if not self._plan.takes(where.partition, where.n):
            return UNTIL
        if not self._queries or isinstance(event.envelope.event, Omitted):
            return ""
        row = row_of(event.envelope)
        return next((o for o, query in self._queries.items() if not query.wants(row)), "")


def join_exclusions(query: Query, more: Query) -> Query:
    """Return a query that excludes whatever either of two queries excludes."""
    words = {
        field: tuple(dict.fromkeys(getattr(query, field) + getattr(more, field)))
        for _, field in _OPTIONS
    }
    return msgspec.structs.replace(more, **words)
