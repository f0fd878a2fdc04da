"""Decides whether an error concerns one lane alone or all lanes of an instance; pure."""

import re

from memorybus.errors import ForeignKey, LogError, ProviderError
from memorybus.redis.connect import translate_redis_error
from redis.exceptions import RedisError, ResponseError

_TRIPPED = re.compile(r"user_script:\d+: (attempt to|bad argument)")
"""The error of one of our Lua scripts that found a field in a form that we never write."""


def raise_unless_lane_error(error: Exception, where: str) -> Exception:
    """Return an error that concerns one lane alone, so that only that lane stops.

    Such an error lies in its keys, its entries, its part of the archive, or in our own code.

    Args:
        error: what a lane's turn raised.
        where: the instance, for the message.

    Raises:
        LogError: Redis is away, which concerns all lanes.
        ProviderError, OSError: the instance cannot continue.
    """
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
