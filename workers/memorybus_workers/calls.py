"""Calls into a provider as others see them: which event, since when, and which ones always hang."""

import random
from collections import Counter
from collections.abc import Iterable

from memorybus.clock import Clock


class Calls:
    """The call that a provider instance is busy with. One writer, any reader.

    Args:
        clock: time.
        rng: jitter of retries.
        attempts: how often an event may hang before it is poison.
    """

    def __init__(self, clock: Clock, rng: random.Random, attempts: int) -> None:
        """Be idle."""
        self.rng = rng
        self._clock = clock
        self._attempts = attempts
        self._event_id = ""
        self._since = 0.0
        self._hangs: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()

    def begin(self, event_id: str) -> None:
        """A hook is about to be called for an event (or an opening, a recall: any name)."""
        self._since = self._clock.monotonic()
        self._event_id = event_id

    def end(self) -> None:
        """It returned."""
        self._event_id = ""

    def interrupted(self) -> bool:
        """Say whether a failure came out of a hook, and be idle again."""
        was_in_hook = self._event_id != ""
        self._event_id = ""
        return was_in_hook

    def hanging(self, timeout: float) -> str:
        """Return the event whose call has taken longer than `timeout` seconds, or ""."""
        event_id = self._event_id
        late = bool(event_id) and self._clock.monotonic() - self._since > timeout
        return event_id if late else ""

    def hung(self, event_id: str) -> None:
        """Remember that a call was abandoned."""
        self._hangs[event_id] += 1

    def tried(self, event_id: str) -> int:
        """Count a failed try of an event; return how many there were."""
        self._tries[event_id] += 1
        return self._tries[event_id]

    def settled(self, event_id: str) -> None:
        """An event is applied or parked: forget its tries."""
        if self._tries:
            self._tries.pop(event_id, None)

    def in_trouble(self, event_ids: Iterable[str]) -> bool:
        """Say whether one of these failed before, and goes alone until it is settled."""
        return bool(self._tries) and any(event_id in self._tries for event_id in event_ids)

    def has_poison(self) -> bool:
        """Say whether any event has hung as often as it may."""
        return any(count >= self._attempts for count in self._hangs.values())

    def is_poison(self, event_id: str) -> bool:
        """Say whether this event has."""
        return self._hangs[event_id] >= self._attempts if self._hangs else False

    def successor(self) -> "Calls":
        """Return the calls of the next instance, which inherits what is known of hangs."""
        heir = Calls(self._clock, self.rng, self._attempts)
        heir._hangs = Counter(self._hangs)
        return heir
