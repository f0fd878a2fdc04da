"""What of the history lies before a copy: read through its plan, and counted."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from memorybus.clock import Clock
from memorybus.copies import Copies
from memorybus.described import Described
from memorybus.events import Omitted, ToolCalled, UnknownEvent
from memorybus.instances import Instance
from memorybus.log import START
from memorybus.logged import LoggedEvent
from memorybus.settings import Settings

TOP = 10
"""Order keys that a plan names, those with the most events."""

_PAGE = 2_000


class Counted(msgspec.Struct, frozen=True):
    """What lies before a copy, read through its plan.

    Attributes:
        events: those that it takes.
        without_effect: those of them that its provider does nothing with.
        left_out: the others, by reason: ``volatile``, ``filtered``, ``retention``, ``forgotten``,
            and ``outside`` for calls of tools that act on the world.
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


def counted(
    desk: Copies,
    instance: Instance,
    what: Described,
    tell: Callable[[int, int], None],
    clock: Clock,
) -> Counted:
    """Read what a copy takes, as its lanes will.

    Args:
        desk: the stores.
        instance: the copy.
        what: what it would be.
        tell: is told how many events of how many are read.
        clock: time.

    Raises:
        LogError, ArchiveError: the history cannot be read.
    """
    begun = clock.monotonic()
    left_out: Counter[str] = Counter()
    types: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    size = done = 0
    total = end_of(desk.settings, instance)
    for page in _pages(desk, instance):
        for event in page:
            why = _left_out(event, instance.provider, what)
            if why:
                left_out[why] += 1
                continue
            types[_type(event)] += 1
            keys[event.envelope.key] += 1
            size += len(msgspec.msgpack.encode(event.envelope))
        done += len(page)
        tell(done, total)
    idle = sum(count for name, count in types.items() if name not in what.handles)
    named = dict(keys.most_common(TOP))
    ordered = dict(types.most_common())
    events = sum(types.values())
    seconds = clock.monotonic() - begun
    return Counted(events, idle, dict(left_out), ordered, named, len(keys), size, seconds)


def _pages(desk: Copies, instance: Instance) -> Iterator[Sequence[LoggedEvent]]:
    for partition in range(desk.settings.partitions):
        entry, n, end = START, 0, instance.plan.end(partition) or 0
        while n < end:
            page = desk.history.read(partition, entry, _PAGE, after_n=n, plan=instance.plan)
            if not page:
                break
            entry, n = page[-1].position.entry, page[-1].position.n
            yield [event for event in page if event.position.n <= end]


def _left_out(event: LoggedEvent, provider: str, what: Described) -> str:
    said = event.envelope.event
    if isinstance(said, Omitted):
        return said.why
    if isinstance(said, ToolCalled) and said.provider == provider:
        return "outside" if said.tool in what.outside_tools else ""
    return ""


def _type(event: LoggedEvent) -> str:
    said = event.envelope.event
    return said.name if isinstance(said, UnknownEvent) else type(said).__name__


def end_of(settings: Settings, instance: Instance) -> int:
    """Return how many events lie up to the end of a copy's plan."""
    return sum(instance.plan.end(partition) or 0 for partition in range(settings.partitions))
