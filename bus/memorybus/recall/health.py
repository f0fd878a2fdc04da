"""Records how each provider answered lately, for people, and pauses asking after failures.

Prompts are counted in the agent's process first, then in Redis (`PromptCounts`). Of failed recalls
there is one hash per provider, kept for a day after the last failure. The pause is a key that
expires by itself, so that no two clocks have to be compared. After the pause, the next recall is a
probe: if it fails too, the next pause is twice as long.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from memorybus.redis.hashes import add_counts
from memorybus.redis.keys import Keys

if TYPE_CHECKING:
    from redis import Redis

_DAY_MS = 86_400_000
FAILURES_BEFORE_PAUSE = 3
"""After this many failures in a row, the provider is not asked for a while."""

_MAX_PAUSE_SECONDS = 30.0
MAX_COUNTED = 10_000
"""How many counts a process keeps until they are reported; beyond it the oldest go (G10)."""

Counted = tuple[str, str, int]  # a provider, a field of `PromptCounts`, and how much is added to it


class RecentRecalls(msgspec.Struct, frozen=True):
    """How a provider's recalls went lately."""

    failing: int = 0  # failures in a row
    failed: int = 0  # failures since the last day without one
    skipped: int = 0  # recalls not made, because of a pause or the queue's bound, in the same time
    # when the last failure was, milliseconds since the Unix epoch, or None
    failed_at: int | None = None
    error: str = ""  # the last failure in one bounded line, credentials masked, or ""
    paused: bool = False  # whether the provider is not asked at present


def pause_after(failing: int) -> float:
    """Return how long to pause after failures in a row: 0 s at first, then 1, 2, 4 up to 30 s."""
    if failing < FAILURES_BEFORE_PAUSE:
        return 0.0
    doublings = min(failing - FAILURES_BEFORE_PAUSE, 10)
    return min(_MAX_PAUSE_SECONDS, 2.0**doublings)


class RecallHealth:
    """Reads and notes how recalls went. Belongs to one thread; raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    def read(self, providers: Sequence[str]) -> dict[str, RecentRecalls]:
        with self._redis.pipeline(transaction=False) as pipe:
            for name in providers:
                pipe.hgetall(self._keys.recalls(name))
                pipe.exists(self._keys.paused(name))
            replies = iter(pipe.execute())
        return {name: _decode_health(next(replies), next(replies)) for name in providers}

    def note_failure(self, provider: str, error: str, now_ms: int) -> None:
        key = self._keys.recalls(provider)
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.hincrby(key, "failing", 1)
            pipe.hincrby(key, "failed", 1)
            pipe.hset(key, mapping={"error": error, "failed_at": now_ms})
            pipe.pexpire(key, _DAY_MS)
            failing, *_ = pipe.execute()
        pause = pause_after(int(failing))
        if pause:
            self._redis.set(self._keys.paused(provider), "1", px=round(pause * 1000))

    def note_success(self, provider: str) -> None:
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(self._keys.recalls(provider), "failing", 0)
            pipe.pexpire(self._keys.recalls(provider), _DAY_MS)
            pipe.delete(self._keys.paused(provider))
            pipe.execute()

    def count_skipped(self, providers: Sequence[str]) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for name in providers:
                pipe.hincrby(self._keys.recalls(name), "skipped", 1)
                pipe.pexpire(self._keys.recalls(name), _DAY_MS)
            pipe.execute()


def _decode_health(fields: dict[bytes, bytes], paused: Any) -> RecentRecalls:
    def count(name: bytes) -> int:
        text = fields.get(name, b"0")
        return int(text) if text.isdigit() else 0  # another program wrote the field

    return RecentRecalls(
        failing=count(b"failing"),
        failed=count(b"failed"),
        skipped=count(b"skipped"),
        failed_at=count(b"failed_at") or None,
        error=fields.get(b"error", b"").decode("utf-8", "replace"),
        paused=bool(paused),
    )


class PromptCounts(msgspec.Struct, frozen=True):
    """How prompts were answered since the last day without one."""

    warm: int = 0  # prompts for which its answer was ready
    fresh: int = 0  # prompts that asked it and got the answer in time
    late: int = 0  # prompts that asked it and got no answer in time, or a failure
    nothing: int = 0  # how many of the answers, warm or fresh, were empty
    waited_ms: int = 0  # how long the prompts that asked it waited, in all

    @property
    def mean_ms(self) -> float | None:
        """The mean wait of a prompt that asked, in milliseconds; None if none asked."""
        asked = self.fresh + self.late
        return self.waited_ms / asked if asked else None


def report_counts(redis: Redis, keys: Keys, counted: deque[Counted]) -> None:
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


def read_counts(redis: Redis, keys: Keys, providers: Sequence[str]) -> dict[str, PromptCounts]:
    fields = PromptCounts.__struct_fields__
    with redis.pipeline(transaction=False) as pipe:
        for name in providers:
            pipe.hmget(keys.prompts(name), *fields)
        replies = pipe.execute()
    return {
        name: PromptCounts(*(int(n) if n and n.isdigit() else 0 for n in numbers))
        for name, numbers in zip(providers, replies, strict=True)
    }
