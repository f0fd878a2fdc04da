"""What of the history lies before a copy: read through its plan, and counted."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from memorybus.clock import Clock
from memorybus.events import Omitted, ToolCalled, UnknownEvent
from memorybus.history.log_part import is_stray
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import START
from memorybus.operations.copies.exclusions import Excepting
from memorybus.operations.stores import Copies
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.description import Described

TOP = 10
"""Order keys that a plan names, those with the most events."""

_PAGE = 2_000

Tell = Callable[[int, int], None]


class Taking(msgspec.Struct, frozen=True):
    """A copy that would take a part of the history.

    Attributes:
        provider: of which.
        what: what it would be.
        plan: what it takes.
        ends: the last number of each partition that lies before it.
        by_option: whether what its plan leaves out is told by the option that does.
    """

    provider: str
    what: Described
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
            ``strange`` for entries that memorybus did not write: these are put aside; in place of
            ``filtered`` each option of a rebuild: ``until``, ``except_session``, ``except_user``,
            ``except_agent``, ``except_origin``, also with 0.
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
        return self.events + self.left_out.get("strange", 0) - parked


def counted(desk: Copies, taking: Taking, tell: Tell, clock: Clock) -> HistoryCount:
    """Read what a copy takes, as its lanes will.

    Args:
        desk: the stores.
        taking: the copy, and its part.
        tell: is told how many events of how many are read.
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
    for page in _pages(desk, taking):
        for event in page:
            why = options.option(event) or _left_out(event, taking)
            if why:
                left_out[why] += 1
                continue
            types[_type(event)] += 1
            keys[event.envelope.key] += 1
            size += len(msgspec.msgpack.encode(event.envelope))
        done += sum(not is_stray(event) for event in page)
        tell(done, total)
    idle = sum(count for name, count in types.items() if name not in taking.what.handles)
    named = dict(keys.most_common(TOP))
    ordered = dict(types.most_common())
    events = sum(types.values())
    seconds = clock.monotonic() - begun
    return HistoryCount(events, idle, dict(left_out), ordered, named, len(keys), size, seconds)


def _pages(desk: Copies, taking: Taking) -> Iterator[Sequence[LoggedEvent]]:
    """Yield what lies before a copy; whole where each option shall be asked."""
    plan = WHOLE if taking.by_option else taking.plan
    for partition, end in taking.ends.items():
        entry, n = START, 0
        while n < end:
            page = desk.history.read(partition, entry, _PAGE, after_n=n, plan=plan)
            if not page:
                break
            entry, n = page[-1].position.entry, page[-1].position.n
            yield [event for event in page if event.position.n <= end]


def _left_out(event: LoggedEvent, taking: Taking) -> str:
    said = event.envelope.event
    if isinstance(said, Omitted):
        return said.why
    if is_stray(event):
        return "strange"
    if isinstance(said, ToolCalled) and said.provider == taking.provider:
        return "outside" if said.tool in taking.what.outside_tools else ""
    return ""


def _type(event: LoggedEvent) -> str:
    said = event.envelope.event
    return said.name if isinstance(said, UnknownEvent) else type(said).__name__
