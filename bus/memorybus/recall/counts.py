"""Counts how prompts were answered, by provider: in the agent's process first, then in Redis."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from memorybus.redis.counts_hash import add_counts
from memorybus.redis.keys import Keys

if TYPE_CHECKING:
    from redis import Redis

_DAY_MS = 86_400_000

MAX_COUNTED = 10_000
"""How many counts a process keeps until they are reported; beyond it the oldest go (G10)."""

Counted = tuple[str, str, int]
"""A provider, a field of `PromptCounts`, and how much is added to it."""


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


def report(redis: Redis, keys: Keys, counted: deque[Counted]) -> None:
    """Move counts from this process to Redis, in one round trip.

    Raises:
        redis.RedisError: Redis is away; the counts stay for the next call.
    """
    taken = [counted.popleft() for _ in range(len(counted))]
    if not taken:
        return
    from redis.exceptions import RedisError

    amounts: Counter[tuple[str, str]] = Counter()
    for name, field, amount in taken:
        amounts[keys.prompts(name), field] += amount
    try:
        add_counts(redis, amounts, _DAY_MS)
    except RedisError:
        counted.extend(taken)
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
