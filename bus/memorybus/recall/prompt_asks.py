"""A prompt's question to a provider, and the reply: two lists in the Redis of the jobs.

RQ needs several milliseconds for a job, and does not wake whoever waits for the result. That is too
slow for a prompt. So its question goes into a list on which a thread of the recall process blocks,
and the reply into a list on which the asker blocks. Questions that are asked ahead of a turn stay
jobs of RQ (`queue`).
"""

from collections import deque
from collections.abc import Collection
from typing import Any

import msgspec
from redis import Redis

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.log.stream import read_head_numbers
from memorybus.msgspec_types import prepared
from memorybus.recall.health import Counted, report_counts
from memorybus.recall.model import RecallRequest, WarmAsk, WarmResult, lifetime_ms
from memorybus.recall.requester import RecallProviderLookup
from memorybus.redis import scripts
from memorybus.redis.connect import connect_jobs, connect_redis, redis_errors
from memorybus.redis.facts import read_server_ms
from memorybus.redis.keys import Keys

QUESTION_TTL_SECONDS = 30
"""Seconds after which a question that nobody takes, or a reply that nobody reads, expires."""

MAX_WAITING = 1_000
"""How many questions may wait for one provider; beyond it the oldest are dropped (G10)."""

_REPLY_TIMEOUT = 1.0
"""Seconds for each reply of Redis; a prompt does not wait for a recall that long."""

_MAX_BLOCK_SECONDS = 0.5  # seconds for which a read blocks at a time: less than `_REPLY_TIMEOUT`


class PromptAsk(msgspec.Struct, frozen=True):
    """A prompt's question to a provider (stored as JSON)."""

    id: str  # 32 hex digits; names the list of the replies
    slot: str  # the session's slot, where the answer is kept warm
    generation: int  # the generation of the request in that slot
    want: RecallRequest  # the request
    until_ms: int  # when the asker gives up, by the clock of the log's Redis


class PromptReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One provider's reply (stored as msgpack); `result` is None if it failed."""

    provider: str
    result: WarmResult | None = None


_ask_decoder = msgspec.json.Decoder(prepared(PromptAsk))
_reply_decoder = msgspec.msgpack.Decoder(prepared(PromptReply))


def put_question(jobs: Redis, keys: Keys, ask: PromptAsk, providers: Collection[str]) -> None:
    """Ask some providers, in one round trip. They take the newest question first.

    So when the load is too high, some prompts get their answer in time instead of none.
    """
    body = msgspec.json.encode(ask)
    with jobs.pipeline(transaction=False) as pipe:
        for provider in providers:
            key = keys.asks(provider)
            pipe.lpush(key, body)
            pipe.ltrim(key, 0, MAX_WAITING - 1)
            pipe.expire(key, QUESTION_TTL_SECONDS)
        pipe.execute()


def take_question(jobs: Redis, keys: Keys, provider: str, timeout: float) -> PromptAsk | None:
    found: Any = jobs.blpop([keys.asks(provider)], timeout)
    return None if found is None else _ask_decoder.decode(found[1])


def send_reply(jobs: Redis, keys: Keys, ask: PromptAsk, answer: PromptReply) -> None:
    key = keys.answers(ask.id)
    with jobs.pipeline(transaction=True) as pipe:
        pipe.rpush(key, msgspec.msgpack.encode(answer))
        pipe.expire(key, QUESTION_TTL_SECONDS)
        pipe.execute()


def await_reply(jobs: Redis, keys: Keys, ask: PromptAsk, timeout: float) -> PromptReply | None:
    found: Any = jobs.blpop([keys.answers(ask.id)], timeout)
    return None if found is None else _reply_decoder.decode(found[1])


class PromptConnection:
    """Asks and listens over two connections, which all threads of an agent share. Thread-safe."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._redis: Redis = connect_redis(settings, timeout=_REPLY_TIMEOUT)
        self._jobs: Redis = connect_jobs(settings, timeout=_REPLY_TIMEOUT)
        # looks up which providers answer recalls
        self.answering = RecallProviderLookup(self._redis, settings, clock)

    def ask(
        self, question: WarmAsk, providers: Collection[str], ask_id: str, left: float
    ) -> PromptAsk:
        until_ms = read_server_ms(self._redis) + round(left * 1000)
        positions = read_head_numbers(self._redis, self._keys, question.partitions)
        want = msgspec.structs.replace(question.want, positions=positions)
        ttl = lifetime_ms(self._settings, want)
        call = scripts.request_recall(self._keys, question.slot, msgspec.json.encode(want), ttl)
        generation = scripts.run(self._redis, call)
        asked = PromptAsk(ask_id, question.slot, generation, want, until_ms)
        put_question(self._jobs, self._keys, asked, providers)
        return asked

    def await_reply(self, asked: PromptAsk, timeout: float) -> PromptReply | None:
        return await_reply(self._jobs, self._keys, asked, min(timeout, _MAX_BLOCK_SECONDS))

    def delete_slot(self, slot: str) -> None:
        self._redis.delete(*self._keys.slot(slot))

    def report(self, counted: deque[Counted]) -> None:
        with redis_errors("recall"):
            report_counts(self._redis, self._keys, counted)

    def close(self) -> None:
        self._redis.close()
        self._jobs.close()
