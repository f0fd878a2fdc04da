"""How much of what was read a lane takes in; pure."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from memorybus.log.entry import LoggedEvent


def consecutive(events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """Return the events up to the first whose number does not follow: it is read again alone."""
    numbers = [event.position.n for event in events]
    if not numbers:
        return events
    first = numbers[0]
    if numbers == list(range(first, first + len(numbers))):
        return events
    return events[: next(i for i, n in enumerate(numbers) if n != first + i)]


def upto(end: int | None, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """Return the consecutive events up to a plan's end; None is no end."""
    if end is None or not events or events[-1].position.n <= end:
        return events
    return [event for event in events if event.position.n <= end]


def runs_of(
    events: Sequence[LoggedEvent], is_so: Callable[[LoggedEvent], bool]
) -> Iterator[tuple[bool, Sequence[LoggedEvent]]]:
    """Yield the longest runs of events that are so, or are not, in order."""
    return ((said, list(run)) for said, run in groupby(events, key=is_so))


def single(events: Sequence[LoggedEvent]) -> Iterator[Sequence[LoggedEvent]]:
    """Yield each event alone."""
    return ([event] for event in events)
