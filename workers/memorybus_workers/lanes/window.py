"""A lane's window: the events above the checkpoint that were read and are not yet done; pure.

Keys are worked on in parallel, and the events of one key one after another (G3). The checkpoint is
the low-water mark: everything up to it is done. The events above it that are done are the done-set,
a bitmap of dense numbers, so that a crash repeats only what was not done. Of a key with very many
events only the first ones are held. The others are skipped, and read again when their turn comes,
so that one busy session does not fill the window of its lane.
"""

import heapq
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

import msgspec
from memorybus.log.entry import LoggedEvent, Place
from memorybus.registry.lanes import encode_done_set

READ_AHEAD_WINDOWS = 16
"""A lane reads at most so many times its window above its checkpoint, while most is skipped."""

_KEY_SHARE = 8  # one key gets at most the window divided by this


class StartPoint(msgspec.Struct, frozen=True):
    """The place where a lane continues: the checkpoint, and what is done above it.

    Bit i of `done` stands for the number n + 1 + i.
    """

    entry: str
    n: int
    done: int = 0


class Skipped(msgspec.Struct, frozen=True):
    """Where the skipped events of a key begin: at `n` or later, after the place `before`."""

    n: int
    before: Place


class LaneWindow:
    """The open events of one lane, by key and in order. Belongs to one thread."""

    def __init__(self, point: StartPoint, size: int) -> None:
        self.entry = self.read_entry = point.entry
        self.n = self.read_n = point.n
        self.open = 0  # how many events are held that are not done
        self.most = max(1, size // _KEY_SHARE)  # how many of them may belong to one key
        self._size = size
        self._done = point.done
        self._before: dict[int, Place] = {}
        self._lows: list[int] = []
        self._queues: dict[str, deque[LoggedEvent]] = {}
        self._skipped: dict[str, Skipped] = {}
        self._to_read_again: deque[str] = deque()
        self._ready: deque[str] = deque()
        self._delayed: list[tuple[float, str]] = []

    # -- what is known ----------------------------------------------------------------------------

    @property
    def keys(self) -> Collection[str]:
        return self._queues.keys()

    @property
    def idle(self) -> bool:
        """Whether no event above the checkpoint is open, skipped or done."""
        return not (self._before or self._done or self._skipped)

    @property
    def at_rest(self) -> bool:
        return not (self._before or self._skipped)

    def held_events(self) -> Iterator[LoggedEvent]:
        return chain.from_iterable(self._queues.values())

    def room(self) -> int:
        return max(
            0, min(self._size - self.open, self._size * READ_AHEAD_WINDOWS - (self.read_n - self.n))
        )

    def is_done(self, n: int) -> bool:
        return n <= self.n or bool(self._done >> (n - self.n - 1) & 1)

    def encoded_done_set(self) -> bytes:
        return encode_done_set(self.n, self._done)

    # -- reading on -------------------------------------------------------------------------------

    def jump(self, n: int) -> None:
        """Continue at a number that does not follow. Call it only while no event is open."""
        self._done = self._done >> n - self.n if n >= self.n else 0
        self.n = self.read_n = n

    def skip_to(self, entry: str, n: int) -> None:
        """Count everything up to a place as done. Call it only while no event is open."""
        self.jump(n)
        self.entry = self.read_entry = entry

    def take_in(self, events: Sequence[LoggedEvent], left: Collection[int] = ()) -> None:
        """Take in events with consecutive numbers; those whose n is in `left` stay open."""
        last = events[-1].position
        if left or not self.idle:
            for event in events:
                self._take_in_one(event, event.position.n in left)
        self.read_entry, self.read_n = last.entry, last.n
        self._advance()

    def _take_in_one(self, event: LoggedEvent, stays: bool) -> None:
        n, key = event.position.n, event.envelope.key
        if not stays:
            self._done |= 1 << (n - self.n - 1)
        elif key not in self._skipped:
            before = Place(self.read_entry, self.read_n)
            if len(self._queues.get(key, ())) < self.most:
                self._keep_open(n, before)
                self._queue(event)
            else:
                self._skipped[key] = Skipped(n, before)
        self.read_entry, self.read_n = event.position.entry, n

    def _keep_open(self, n: int, before: Place) -> None:
        self._before[n] = before
        heapq.heappush(self._lows, n)

    def _queue(self, event: LoggedEvent) -> None:
        key = event.envelope.key
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._ready.append(key)
        queue.append(event)
        self.open += 1

    # -- what was skipped -------------------------------------------------------------------------

    def key_to_read_again(self) -> tuple[str, Place] | None:
        """Return a key whose held events are done, and the place before its skipped ones."""
        if not self._to_read_again:
            return None
        key = self._to_read_again[0]
        return key, self._skipped[key].before

    def take_in_skipped(self, events: Sequence[LoggedEvent], *, keep: bool = True) -> None:
        """Continue with a key's skipped events, read after the place of `key_to_read_again`."""
        key = self._to_read_again.popleft()
        skipped = self._skipped.pop(key)
        place = skipped.before
        for event in events:
            n = event.position.n
            if n > self.read_n or len(self._queues[key]) >= self.most:
                break
            if event.envelope.key == key and not self.is_done(n):
                self._take_in_skipped_one(event, place, keep=keep)
            place = Place(event.position.entry, n)
        self._note_rest(key, place, over=not events or events[0].position.n > self.read_n)
        self._advance()

    def _take_in_skipped_one(self, event: LoggedEvent, before: Place, *, keep: bool) -> None:
        n = event.position.n
        if keep:
            self._keep_open(n, before)
            self._queues[event.envelope.key].append(event)
            self.open += 1
        else:
            self._done |= 1 << (n - self.n - 1)

    def _note_rest(self, key: str, place: Place, *, over: bool) -> None:
        if place.n < self.read_n and not over:
            self._skipped[key] = Skipped(place.n + 1, place)
        if self._queues[key]:
            self._ready.append(key)
        elif key in self._skipped:
            self._to_read_again.append(key)
        else:
            del self._queues[key]

    # -- working off ------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[1])

    def take(self, most: int) -> Iterator[LoggedEvent]:
        """Yield the first event of up to `most` ready keys, which are busy from then on."""
        for _ in range(min(most, len(self._ready))):
            yield self._queues[self._ready.popleft()][0]

    def next_at(self) -> float:
        return self._delayed[0][0] if self._delayed else float("inf")

    def has_ready(self) -> bool:
        return bool(self._ready)

    def finish(self, event: LoggedEvent) -> None:
        key = event.envelope.key
        self._mark_done(self._queues[key].popleft())
        if self._queues[key]:
            self._ready.append(key)
        else:
            self._note_emptied(key)
        self._advance()

    def finish_first(self, events: Sequence[LoggedEvent]) -> None:
        """Note that a taken event and some behind it are done; their key stays busy."""
        for event in events:
            self._mark_done(self._queues[event.envelope.key].popleft())
        self._advance()

    def _note_emptied(self, key: str) -> None:
        if key in self._skipped:
            self._to_read_again.append(key)
        else:
            del self._queues[key]

    def postpone(self, event: LoggedEvent, until: float) -> None:
        heapq.heappush(self._delayed, (until, event.envelope.key))

    def delay(self, key: str, until: float) -> None:
        """Let a key that became ready in `take_in` wait until `until`."""
        self._ready.remove(key)
        heapq.heappush(self._delayed, (until, key))

    def waiting_from(self, event: LoggedEvent) -> list[LoggedEvent]:
        """Return a taken event and the events of its key that wait behind it."""
        return list(self._queues[event.envelope.key])

    def pass_over(self, event: LoggedEvent) -> None:
        """Count a taken event and those held behind it as done, because they were parked."""
        queue = self._queues[event.envelope.key]
        while queue:
            self._mark_done(queue.popleft())
        self._note_emptied(event.envelope.key)
        self._advance()

    def _mark_done(self, event: LoggedEvent) -> None:
        n = event.position.n
        del self._before[n]
        self._done |= 1 << (n - self.n - 1)
        self.open -= 1

    def _advance(self) -> None:
        """Raise the checkpoint to just before the first event that is not done."""
        while self._lows and self._lows[0] not in self._before:
            heapq.heappop(self._lows)
        low = self._before[self._lows[0]] if self._lows else Place(self.read_entry, self.read_n)
        for skipped in self._skipped.values():
            if skipped.n <= low.n:
                low = skipped.before
        self._done >>= low.n - self.n
        self.entry, self.n = low.entry, low.n
