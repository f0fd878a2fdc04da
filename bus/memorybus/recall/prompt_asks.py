"""A prompt's question to a provider, and the reply: two lists in the Redis of the jobs.

RQ needs several milliseconds for a job, and does not wake whoever waits for the result. That is too
slow for a prompt. So its question goes into a list on which a thread of the recall process blocks,
and the reply into a list on which the asker blocks. Questions that are asked ahead of a turn stay
jobs of RQ (`queue`).
"""

from collections.abc import Collection
from typing import Any

import msgspec
from redis import Redis

from memorybus.msgspec_types import prepared
from memorybus.recall.model import RecallRequest, WarmResult
from memorybus.redis.keys import Keys

QUESTION_TTL_SECONDS = 30
"""Seconds after which a question that nobody takes, or a reply that nobody reads, expires."""

MAX_WAITING = 1_000
"""How many questions may wait for one provider; beyond it the oldest are dropped (G10)."""


class PromptAsk(msgspec.Struct, frozen=True):
    """A prompt's question to a provider (stored as JSON).

    Attributes:
        id: 32 hex digits; names the list of the replies.
        slot: the session's slot, where the answer is kept warm.
        generation: the generation of the request in that slot.
        want: the request.
        until_ms: when the asker gives up, by the clock of the log's Redis.
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


_ask_decoder = msgspec.json.Decoder(prepared(PromptAsk))
_reply_decoder = msgspec.msgpack.Decoder(prepared(PromptReply))


def put_question(jobs: Redis, keys: Keys, ask: PromptAsk, providers: Collection[str]) -> None:
    """Ask some providers, in one round trip. They take the newest question first.

    So when the load is too high, some prompts get their answer in time instead of none.

    Raises:
        redis.RedisError: Redis is away.
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
    """Wait for a question to a provider for at most `timeout` seconds.

    Raises:
        redis.RedisError: Redis is away.
        msgspec.MsgspecError: the list held something that is not a question.
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
        pipe.expire(key, QUESTION_TTL_SECONDS)
        pipe.execute()


def await_reply(jobs: Redis, keys: Keys, ask: PromptAsk, timeout: float) -> PromptReply | None:
    """Wait for the next reply to a question for at most `timeout` seconds.

    Raises:
        redis.RedisError: Redis is away.
        msgspec.MsgspecError: the list held something that is not a reply.
    """
    found: Any = jobs.blpop([keys.answers(ask.id)], timeout)
    return None if found is None else _reply_decoder.decode(found[1])
