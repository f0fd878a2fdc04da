"""Decides what to do after a failed call, and whether it concerns one lane alone; pure."""

import random
import re
from typing import Final

import msgspec
from memorybus.concurrency.backoff import backoff
from memorybus.errors import ForeignKey, LogError, ProviderError, Transient, Unavailable
from memorybus.redis.connect import translate_redis_error
from memorybus.text.redact import one_line
from redis.exceptions import RedisError, ResponseError

_FIRST_DELAY = 0.1
_MAX_DELAY = 30.0


class RetryIn(msgspec.Struct, frozen=True):
    """Try the event again after so many seconds; other keys go on meanwhile."""

    delay: float


class ParkKey(msgspec.Struct, frozen=True):
    """Park the event's key: the event is refused for good (G6)."""


class BackendDown(msgspec.Struct, frozen=True):
    """Hold back all calls of the provider; nothing is parked because of this (G6)."""


Decision = RetryIn | ParkKey | BackendDown


def decide_retry(error: BaseException, attempt: int, attempts: int, rng: random.Random) -> Decision:
    if isinstance(error, Unavailable):
        return BackendDown()
    if isinstance(error, Transient) and attempt < attempts:
        return RetryIn(retry_delay(attempt, rng))
    return ParkKey()


def retry_delay(failures: int, rng: random.Random) -> float:
    """Return the seconds to wait after the n-th failure in a row (from 1): doubled, jittered."""
    return backoff(failures - 1, rng, first=_FIRST_DELAY, cap=_MAX_DELAY)


def describe_failure(error: BaseException) -> str:
    """Return why an event was parked, in one bounded line for people, credentials masked."""
    text = str(error).strip() or "no message"
    return (
        one_line(text)
        if isinstance(error, ProviderError)
        else one_line(f"{type(error).__name__}: {text}")
    )


class RetryAt(msgspec.Struct, frozen=True):
    """The event stays open, and its key waits."""

    at: float  # when to try it again (monotonic seconds)


_TRIPPED = re.compile(r"user_script:\d+: (attempt to|bad argument)")
"""The error of one of our Lua scripts that found a field in a form that we never write."""


def raise_unless_lane_error(error: Exception, where: str) -> Exception:
    """Return an error that concerns one lane alone, so that only that lane stops."""
    if isinstance(error, RedisError):
        meant = translate_redis_error(error, where)
        if isinstance(meant, ForeignKey):
            return meant
        if isinstance(error, ResponseError) and _TRIPPED.search(str(error)):
            return error
        raise meant from error
    if isinstance(error, LogError | ProviderError | OSError) and not isinstance(error, ForeignKey):
        raise error
    return error


class Done(msgspec.Struct, frozen=True):
    """The event is applied, or there was nothing to do for it."""


class Parked(msgspec.Struct, frozen=True):
    """The event waits in the lane's dead letters: it counts as done for the checkpoint."""


TryVerdict = Done | Parked | RetryAt
DONE: Final = Done()
PARKED: Final = Parked()
