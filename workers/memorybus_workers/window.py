"""A lane's window: what was read and is not yet done, above the checkpoint. Pure bookkeeping.

Keys go on side by side, the events of one key one after another (G3). The checkpoint is the low
water: everything up to it is done. What is done above it is the done-set, a bitmap of dense
numbers, so that a crash repeats only what was not done.
"""

import heapq
from collections import deque
from collections.abc import Collection, Iterator, Sequence

import msgspec
from memorybus.logged import LoggedEvent

_HEADER = 8


class Begin(msgspec.Struct, frozen=True):
    """Where a lane goes on: the checkpoint, and what is done above it (bit i is n + 1 + i)."""

    entry: str
    n: int
    done: int = 0


class Window:
    """The open events of one lane, by key and in order. Belongs to one thread.

    Attributes:
        entry: the checkpoint: every event up to here is done.
        n: its dense number.
        read_entry: how far the lane has read.
        read_n: its dense number.
    """

    def __init__(self, begin: Begin, size: int) -> None:
        """Hold nothing open; `size` is how far above the checkpoint may be read (G10)."""
        self.entry = self.read_entry = begin.entry
        self.n = self.read_n = begin.n
        self._size = size
        self._done = begin.done
        self._before: dict[int, tuple[str, int]] = {}
        self._queues: dict[str, deque[LoggedEvent]] = {}
        self._ready: deque[str] = deque()
        self._delayed: list[tuple[float, str]] = []

    # -- what is known ----------------------------------------------------------------------------

    @property
    def keys(self) -> Collection[str]:
        """The keys that have open events."""
        return self._queues.keys()

    @property
    def idle(self) -> bool:
        """Whether nothing is open or done above the checkpoint."""
        return not self._before and not self._done

    @property
    def open(self) -> int:
        """How many events are open."""
        return len(self._before)

    def room(self) -> int:
        """Return how many events may be read now."""
        return max(0, self._size - (self.read_n - self.n))

    def is_done(self, n: int) -> bool:
        """Say whether an event above the checkpoint is done."""
        return n <= self.n or bool(self._done >> (n - self.n - 1) & 1)

    def done(self) -> bytes:
        """Return the done-set: empty, or the checkpoint's number and the bitmap, little-endian."""
        if not self._done:
            return b""
        bits = self._done.to_bytes((self._done.bit_length() + 7) // 8, "little")
        return self.n.to_bytes(_HEADER, "little") + bits

    # -- reading on -------------------------------------------------------------------------------

    def jump(self, n: int) -> None:
        """The next entry's number does not follow: go on before it. Only while `idle`."""
        self.n = self.read_n = n

    def take_in(self, events: Sequence[LoggedEvent], left: Collection[int] = ()) -> None:
        """Events with consecutive numbers were read; those whose n is in `left` stay open."""
        last = events[-1].position
        if left or not self.idle:
            for event in events:
                self._take_in_one(event, event.position.n in left)
        self.read_entry, self.read_n = last.entry, last.n
        self._advance()

    def _take_in_one(self, event: LoggedEvent, stays: bool) -> None:
        n = event.position.n
        if stays:
            self._before[n] = (self.read_entry, self.read_n)
            self._queue(event)
        else:
            self._done |= 1 << (n - self.n - 1)
        self.read_entry, self.read_n = event.position.entry, n

    def _queue(self, event: LoggedEvent) -> None:
        key = event.envelope.key
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._ready.append(key)
        queue.append(event)

    # -- working off ------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Make the keys ready whose time has come."""
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[1])

    def take(self, most: int) -> Iterator[LoggedEvent]:
        """Yield the first event of up to `most` ready keys, which then are busy."""
        for _ in range(min(most, len(self._ready))):
            yield self._queues[self._ready.popleft()][0]

    def next_at(self) -> float:
        """Return when a delayed key is due; infinity if none is."""
        return self._delayed[0][0] if self._delayed else float("inf")

    def has_ready(self) -> bool:
        """Say whether a key is ready."""
        return bool(self._ready)

    def finish(self, event: LoggedEvent) -> None:
        """A taken event is done; its key's next one is ready."""
        key = event.envelope.key
        self._pass(self._queues[key].popleft())
        if self._queues[key]:
            self._ready.append(key)
        else:
            del self._queues[key]
        self._advance()

    def postpone(self, event: LoggedEvent, until: float) -> None:
        """A taken event failed: its key waits."""
        heapq.heappush(self._delayed, (until, event.envelope.key))

    def delay(self, key: str, until: float) -> None:
        """A key that became open in `take_in` is not ready before `until`."""
        self._ready.remove(key)
        heapq.heappush(self._delayed, (until, key))

    def waiting(self, event: LoggedEvent) -> list[LoggedEvent]:
        """Return a taken event and those of its key that wait behind it."""
        return list(self._queues[event.envelope.key])

    def abandon(self, event: LoggedEvent) -> None:
        """A taken event and those behind it are put aside: all of them are done."""
        for one in self._queues.pop(event.envelope.key):
            self._pass(one)
        self._advance()

    def _pass(self, event: LoggedEvent) -> None:
        n = event.position.n
        del self._before[n]
        self._done |= 1 << (n - self.n - 1)

    def _advance(self) -> None:
        """Raise the low water to just before the first open event."""
        to = next(iter(self._before.values()), None) or (self.read_entry, self.read_n)
        entry, n = to
        self._done >>= n - self.n
        self.entry, self.n = entry, n


def done_above(done: bytes, n: int) -> int:
    """Return a written done-set as a bitmap above `n`: an older release may have moved on since."""
    if len(done) <= _HEADER:
        return 0
    base = int.from_bytes(done[:_HEADER], "little")
    bits = int.from_bytes(done[_HEADER:], "little")
    return bits >> (n - base) if n >= base else 0
