"""The two connections over which an agent's prompts ask providers; all asking threads share them.

This is the part of `fresh` that needs redis-py: it is imported when the first prompt asks.
"""

from collections import deque
from collections.abc import Collection

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.log.heads import read_head_numbers
from memorybus.recall import counts, prompt_asks
from memorybus.recall.counts import Counted
from memorybus.recall.model import WarmAsk, lifetime_ms
from memorybus.recall.prompt_asks import PromptAsk, PromptReply
from memorybus.recall.provider_lookup import RecallProviderLookup
from memorybus.redis import scripts
from memorybus.redis.connect import connect_jobs, connect_redis, translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.redis.server_time import read_server_ms

_REPLY_TIMEOUT = 1.0
"""Seconds for each reply of Redis; a prompt does not wait for a recall that long."""

_MAX_BLOCK_SECONDS = 0.5
"""Seconds for which a read blocks at a time: less than `_REPLY_TIMEOUT`."""


class PromptExchange:
    """Asks and listens. Thread-safe; raises what redis-py raises, and `LogError`.

    Attributes:
        answering: looks up which providers answer recalls.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Connect at the first question."""
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._redis: Redis = connect_redis(settings, timeout=_REPLY_TIMEOUT)
        self._jobs: Redis = connect_jobs(settings, timeout=_REPLY_TIMEOUT)
        self.answering = RecallProviderLookup(self._redis, settings, clock)

    def ask(
        self, question: WarmAsk, providers: Collection[str], ask_id: str, left: float
    ) -> PromptAsk:
        """Make a question the newest of its slot, and ask some providers.

        Args:
            question: the question; its positions are filled in here.
            providers: the providers to ask.
            ask_id: 32 hex digits.
            left: seconds for which the asker waits.
        """
        until_ms = read_server_ms(self._redis) + round(left * 1000)
        positions = read_head_numbers(self._redis, self._keys, question.partitions)
        want = msgspec.structs.replace(question.want, positions=positions)
        ttl = lifetime_ms(self._settings, want)
        call = scripts.request_recall(self._keys, question.slot, msgspec.json.encode(want), ttl)
        generation = scripts.run(self._redis, call)
        asked = PromptAsk(ask_id, question.slot, generation, want, until_ms)
        prompt_asks.put_question(self._jobs, self._keys, asked, providers)
        return asked

    def await_reply(self, asked: PromptAsk, timeout: float) -> PromptReply | None:
        """Return the next reply; None if none came within `timeout` seconds, or a shorter time."""
        return prompt_asks.await_reply(
            self._jobs, self._keys, asked, min(timeout, _MAX_BLOCK_SECONDS)
        )

    def delete_slot(self, slot: str) -> None:
        """Delete the question and the answers of a slot in which nobody asks any more."""
        self._redis.delete(*self._keys.slot(slot))

    def report(self, counted: deque[Counted]) -> None:
        """Move counts to Redis.

        Raises:
            LogUnavailable: Redis is away.
        """
        try:
            counts.report(self._redis, self._keys, counted)
        except (RedisError, OSError) as error:
            raise translate_redis_error(error, "recall") from error

    def close(self) -> None:
        """Close both connections."""
        self._redis.close()
        self._jobs.close()
