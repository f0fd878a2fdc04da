"""Counts how prompts were answered, by provider: in the agent's process first, then in Redis."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from memorybus.redis.counts_hash import add_counts
from memorybus.redis.keys import Keys

if TYPE_CHECKING:
    from redis import Redis

_DAY_MS = 86_400_000
_MAX_COUNTED = 10_000

PromptOutcome = Literal["warm", "fresh", "late"]


class PromptCounts(msgspec.Struct, frozen=True):
    """How prompts were answered since the last day without one.

    Attributes:
        warm: prompts for which its answer was ready.
        fresh: prompts that asked it and got the answer in time.
        late: prompts that asked it and got no answer in time, or a failure.
        nothing: how many of the answers, warm or fresh, were empty.
        waited_ms: how long the prompts that asked it waited, in all.
    """

    warm: int = 0
    fresh: int = 0
    late: int = 0
    nothing: int = 0
    waited_ms: int = 0

    @property
    def mean_ms(self) -> float | None:
        """The mean wait of a prompt that asked, in milliseconds; None if none asked."""
        asked = self.fresh + self.late
        return self.waited_ms / asked if asked else None


class PromptCounter:
    """Counts in this process until `report` adds the counts to Redis.

    Any thread may count, also in a signal handler or after a fork: counting takes no lock. Counts
    that are not reported are dropped beyond a bound, the oldest first (G10).
    """

    def __init__(self) -> None:
        """Start without counts."""
        self._counted: deque[tuple[str, str, int]] = deque(maxlen=_MAX_COUNTED)

    @property
    def pending(self) -> bool:
        """Whether there are counts that were not reported yet."""
        return bool(self._counted)

    def count(
        self, provider: str, outcome: PromptOutcome, *, nothing: bool, waited_ms: int = 0
    ) -> None:
        """Count one provider's part in the answer to one prompt.

        Args:
            provider: the provider.
            outcome: how it answered.
            nothing: whether its answer was empty.
            waited_ms: how long the prompt waited, if it asked.
        """
        self._counted.append((provider, outcome, 1))
        if nothing:
            self._counted.append((provider, "nothing", 1))
        if waited_ms:
            self._counted.append((provider, "waited_ms", waited_ms))

    def report(self, redis: Redis, keys: Keys) -> None:
        """Add the counts to Redis, in one round trip.

        Raises:
            redis.RedisError: Redis is away; the next call reports these counts.
        """
        taken = [self._counted.popleft() for _ in range(len(self._counted))]
        if not taken:
            return
        from redis.exceptions import RedisError

        amounts: Counter[tuple[str, str]] = Counter()
        for name, field, amount in taken:
            amounts[keys.prompts(name), field] += amount
        try:
            add_counts(redis, amounts, _DAY_MS)
        except RedisError:
            self._counted.extend(taken)
            raise


def read(redis: Redis, keys: Keys, providers: Sequence[str]) -> dict[str, PromptCounts]:
    """Return the counts of some providers, in one round trip.

    Raises:
        redis.RedisError: Redis is away.
    """
    fields = PromptCounts.__struct_fields__
    with redis.pipeline(transaction=False) as pipe:
        for name in providers:
            pipe.hmget(keys.prompts(name), *fields)
        found = pipe.execute()
    return {
        name: PromptCounts(*(int(n) if n and n.isdigit() else 0 for n in numbers))
        for name, numbers in zip(providers, found, strict=True)
    }
