"""Connections to Redis, and what its failures mean to the bus.

The redis-py defaults are wrong for a log: retries repeat writes, and a socket time-out shorter
than a blocking read breaks it (redis-py 8.1 retries ten times with a 5 s time-out). Here every
connection says its time-out, and nothing is retried behind our back.
"""

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from memorybus.errors import ForeignKey, LogError, LogUnavailable
from memorybus.redis_urls import redacted
from memorybus.settings import Settings

TIMEOUT = 5.0
"""Seconds a plain command may take."""


def connect_redis(settings: Settings, *, timeout: float = TIMEOUT, single: bool = False) -> Redis:
    """Return a client of the log's Redis; connects at its first command, unless `single`.

    Args:
        settings: where Redis is.
        timeout: seconds for connecting and for each reply.
        single: keep one connection for one thread, which saves the pool's work per command; it
            is made here.

    Raises:
        LogUnavailable: with `single`, no connection.
    """
    try:
        return _client(settings.redis_url, timeout, single)
    except (RedisError, OSError) as error:
        raise translated(error, redacted(settings.redis_url)) from error


def connect_jobs(settings: Settings, *, timeout: float = TIMEOUT) -> Redis:
    """Return a client of the Redis that holds the RQ jobs."""
    return _client(settings.redis_jobs_url, timeout, single=False)


def _client(url: str, timeout: float, single: bool) -> Redis:
    client = Redis.from_url(
        url,
        protocol=2,
        decode_responses=False,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        single_connection_client=single,
    )
    # An entry's fields as the list they come as: a dict for each is a tenth of a lane's work.
    client.set_response_callback("XRANGE", lambda reply, **_: reply)
    return client


def translated(error: Exception, where: str) -> LogError:
    """Return the bus error that a Redis error stands for.

    Args:
        error: what redis-py raised or returned.
        where: the key or the URL without credentials, for the message.
    """
    text = str(error)
    if "WRONGTYPE" in text:  # 6.2 puts it at the end of a script's error
        return ForeignKey(
            f"{where}: holds something that memorybus did not write; rename or delete it, or set "
            f"another `namespace`"
        )
    return LogUnavailable(f"{where}: {text or type(error).__name__}")
