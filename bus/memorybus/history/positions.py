"""Turns moments of the history into numbers: a time, a position or an event, in log order."""

import re
from itertools import islice
from typing import Protocol

from memorybus.archive.tombstones import RAISE_DAMAGE
from memorybus.errors import ConfigError
from memorybus.history.forward import Scan
from memorybus.history.log_reader import EventPage
from memorybus.history.sources import END, Sources
from memorybus.log.entry import Place, parse_entry_id
from memorybus.log.stream import START
from memorybus.query.query import Query
from memorybus.query.ranges import WHOLE, NumberRange, Plan

_POSITION = re.compile(r"p(\d{2,6}):(\d{1,15})")
_ID = re.compile(r"[0-9a-f]{32}")
_MAX_READ_GAP = 1_000
"""If two known places are at most this many numbers apart, the events between them are read."""

_LAST_SEQUENCE = (1 << 64) - 1


class PagedHistory(Protocol):
    """The part of a `History` that finding positions needs."""

    def read(
        self,
        partition: int,
        after: str = START,
        count: int = 500,
        *,
        after_n: int = 0,
        plan: Plan = WHOLE,
    ) -> EventPage: ...

    def last_before(self, partition: int, entry: str) -> Place | None: ...


class PositionFinder:
    """Finds places in a history. Raises what `History` raises."""

    def __init__(self, history: PagedHistory, sources: Sources) -> None:
        self._history = history
        self._sources = sources
        self._partitions = sources.log.partitions

    # -- a moment, over all partitions ------------------------------------------------------------

    def places(self, when: int | str, *, inclusive: bool) -> dict[int, int]:
        entry, partition, n = self._resolve_moment(when)
        found: dict[int, int] = {}
        for p in range(self._partitions):
            if p == partition:
                found[p] = n if inclusive else n - 1
            else:  # events of the same time are ordered by their partitions
                whole = inclusive if partition is None else p < partition
                found[p] = self._number_before(p, entry, inclusive=whole)
        return found

    def _resolve_moment(self, when: int | str) -> tuple[str, int | None, int]:
        """Return the entry, the partition (None for a time) and the number of a moment."""
        if isinstance(when, int):
            return f"{when}-{_LAST_SEQUENCE}", None, 0
        if match := _POSITION.fullmatch(when):
            return self._resolve_position(int(match[1]), int(match[2]))
        if _ID.fullmatch(when):
            return self._resolve_event(when)
        raise ConfigError(
            f"{when!r} is not a time, position or event: give a time, a position (p07:1234) "
            "or an id"
        )

    def _resolve_position(self, partition: int, n: int) -> tuple[str, int, int]:
        if partition >= self._partitions:
            raise ConfigError(f"there is no partition p{partition:02d}; see: memorybus status")
        place = self.place(partition, n)
        if place is None:
            return START, partition, 0
        if place.n < n:  # beyond the end: after all events of the last one's time
            return place.entry, self._partitions, 0
        return place.entry, partition, place.n

    def _resolve_event(self, event_id: str) -> tuple[str, int, int]:
        plan = Plan(query=Query(ids=(event_id,)))
        scan = Scan(self._sources, plan, None, None, RAISE_DAMAGE)
        for partition in range(self._partitions):
            for event in islice(scan.partition(partition), 1):
                return event.position.entry, partition, event.position.n
        raise ConfigError(f"no event {event_id} in the history; see: memorybus events ls")

    def _number_before(self, partition: int, entry: str, *, inclusive: bool) -> int:
        ms, sequence = parse_entry_id(entry)
        if sequence == _LAST_SEQUENCE:  # a time: the end of its millisecond, or the beginning
            before = f"{ms + 1}-0" if inclusive else f"{ms}-0"
        else:
            before = f"{ms}-{sequence + 1}" if inclusive else entry
        place = self._history.last_before(partition, before)
        return place.n if place else 0

    # -- a number, in one partition ---------------------------------------------------------------

    def place(self, partition: int, n: int) -> Place | None:
        if n < 1:
            return None
        low, high = Place(START, 0), self._history.last_before(partition, END)
        if high is None or high.n <= n:
            return high
        while high.n - low.n > _MAX_READ_GAP and (
            middle := self._place_between(partition, low, high)
        ):
            if middle.n <= n:
                low = middle
            else:
                high = middle
        return self._read_forward(partition, low, n)

    def _place_between(self, partition: int, low: Place, high: Place) -> Place | None:
        first, last = parse_entry_id(low.entry)[0], parse_entry_id(high.entry)[0]
        if low.entry == START:
            first = self._first_ms(partition, last)
        while last - first > 1:
            middle = (first + last) // 2
            place = self._history.last_before(partition, f"{middle}-0")
            if place is not None and place.n > low.n:
                return place
            first = middle
        return None

    def _first_ms(self, partition: int, last: int) -> int:
        first = self._history.read(partition, START, 1).events
        return parse_entry_id(first[0].position.entry)[0] if first else last

    def _read_forward(self, partition: int, place: Place, n: int) -> Place | None:
        nothing = Plan(spans={partition: (NumberRange(1, 0),)})
        while place.n < n:
            after = (place.entry, _MAX_READ_GAP)
            page = self._history.read(partition, *after, after_n=place.n, plan=nothing)
            within = [event.position for event in page.events if event.position.n <= n]
            if not within:
                break
            place = Place(within[-1].entry, within[-1].n)
        return place if place.n else None
