"""A prompt's question to one provider, and its reply: two lists in the Redis of the jobs.

RQ takes several milliseconds for a job, and nobody who waits for it is woken. A prompt cannot wait
for that, so it goes by a list that a thread of the recall process blocks on, and the reply by a
list that the asker blocks on. What is asked ahead of a turn stays a job of RQ (`queue`).
"""

from collections.abc import Collection
from typing import Any

import msgspec
from redis import Redis

from memorybus.recall.model import RecallRequest, WarmResult
from memorybus.redis.keys import Keys

LIFE = 30
"""Seconds for which a question waits that nobody takes, and a reply that nobody reads."""

LONGEST = 1_000
"""Questions that may wait for one provider; the oldest are dropped beyond it (G10)."""


class PromptAsk(msgspec.Struct, frozen=True):
    """What a provider is asked now (stored as JSON).

    Attributes:
        id: 32 hex digits; names the list of the replies.
        slot: the session's slot, where the answer is kept warm.
        generation: of the request in that slot.
        want: the request.
        until_ms: when its asker gives up, by the clock of the log's Redis.
    """

    id: str
    slot: str
    generation: int
    want: RecallRequest
    until_ms: int


class PromptReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One provider's reply (stored as msgpack); `result` is None if it failed."""

    provider: str
    result: WarmResult | None = None


_ask_decoder = msgspec.json.Decoder(PromptAsk)
_reply_decoder = msgspec.msgpack.Decoder(PromptReply)


def put_question(jobs: Redis, keys: Keys, ask: PromptAsk, providers: Collection[str]) -> None:
    """Ask some providers, in one round trip. The newest question is taken first.

    So under a load that is too high some prompts have their answer in time, instead of none.

    Raises:
        redis.RedisError: Redis is away.
    """
    body = msgspec.json.encode(ask)
    with jobs.pipeline(transaction=False) as pipe:
        for provider in providers:
            key = keys.asks(provider)
            pipe.lpush(key, body)
            pipe.ltrim(key, 0, LONGEST - 1)
            pipe.expire(key, LIFE)
        pipe.execute()


def take_question(jobs: Redis, keys: Keys, provider: str, timeout: float) -> PromptAsk | None:
    """Wait for a question to a provider for at most `timeout` seconds.

    Raises:
        redis.RedisError: Redis is away.
        msgspec.MsgspecError: what was there is no question.
    """
    found: Any = jobs.blpop([keys.asks(provider)], timeout)
    return None if found is None else _ask_decoder.decode(found[1])


def send_reply(jobs: Redis, keys: Keys, ask: PromptAsk, answer: PromptReply) -> None:
    """Wake the asker with one provider's reply.

    Raises:
        redis.RedisError: Redis is away.
    """
    key = keys.answers(ask.id)
    with jobs.pipeline(transaction=True) as pipe:
        pipe.rpush(key, msgspec.msgpack.encode(answer))
        pipe.expire(key, LIFE)
        pipe.execute()


def await_reply(jobs: Redis, keys: Keys, ask: PromptAsk, timeout: float) -> PromptReply | None:
    """Wait for the next reply to a question for at most `timeout` seconds.

    Raises:
        redis.RedisError: Redis is away.
        msgspec.MsgspecError: what was there is no reply.
    """
    found: Any = jobs.blpop([keys.answers(ask.id)], timeout)
    return None if found is None else _reply_decoder.decode(found[1])
