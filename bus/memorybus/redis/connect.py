"""Opens connections to Redis, and translates its errors into those of the bus.

The defaults of redis-py are wrong for a log: retries repeat writes, and a socket time-out that is
shorter than a blocking read breaks it (redis-py 8.1 retries ten times with a time-out of 5 s). Here
every connection has its own time-out, and redis-py retries nothing. redis-py and scripts of Redis
6.2 change how an error begins, so a server that answers but does not serve is known by its words.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from redis import Redis, SSLConnection
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.driver_info import DriverInfo
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from memorybus.config.redis_urls import (
    hosts_of,
    is_cluster,
    is_sentinel,
    redacted,
    service_of,
    single_server_url,
)
from memorybus.config.settings import Settings
from memorybus.errors import AccessDenied, ForeignKey, LogError, LogUnavailable
from memorybus.redis.cluster import Cluster
from memorybus.redis.cluster_nodes import Nodes


class Refusal(msgspec.Struct, frozen=True):
    """Why a server does not serve, to follow its name in a sentence, and what to do about it."""

    why: str
    remedy: str


_REFUSALS: Final[tuple[tuple[re.Pattern[str], Refusal], ...]] = tuple(
    (re.compile(words), Refusal(why, remedy))
    for words, why, remedy in (
        (
            "against a read only replica",
            "is a replica and takes no writes (READONLY)",
            "let `url` name the master, or promote this server: redis-cli replicaof no one",
        ),
        (
            "MISCONF",
            "cannot save its data, so it refuses writes (MISCONF)",
            "make room on the disk of Redis, and see its log for what it could not write",
        ),
        (
            "used memory > 'maxmemory'",
            "has no memory left, so it refuses writes (OOM)",
            "raise its maxmemory, or give its machine more memory",
        ),
        (
            "loading the dataset in memory",
            "is still loading its data (LOADING)",
            "wait: it serves once everything is read",
        ),
        (
            "CLUSTERDOWN|cluster is down|slot not served|serves slot",
            "lacks a shard of its cluster (CLUSTERDOWN)",
            "start the shard's nodes, or promote its replica: redis-cli cluster failover",
        ),
        (
            "Link with MASTER is down",
            "is a replica without its master (MASTERDOWN)",
            "start the master, or let `url` name another",
        ),
        (
            "NOREPLICAS",
            "has too few replicas, so it refuses writes (NOREPLICAS)",
            "start the replicas, or lower min-replicas-to-write",
        ),
        (
            r"BUSY \w+ is busy",
            "is held up by a script (BUSY)",
            "wait, or end the script: redis-cli script kill",
        ),
        (
            "max number of clients reached",
            "has too many connections",
            "raise its maxclients, or see who connects: redis-cli client list",
        ),
    )
)


def find_refusal(text: str) -> Refusal | None:
    """Return what an error's text says about the server's state; None if it says nothing."""
    return next((refusal for words, refusal in _REFUSALS if words.search(text)), None)


_T = TypeVar("_T")
TIMEOUT = 5.0  # seconds a plain command may take
_SENTINEL_DENIED = "AuthenticationError"
"""In redis-py's text of an error, this says that a sentinel refused our credentials."""

_SENTINEL_TIMEOUT = 1.0  # seconds a sentinel may take: after that, another one is asked
_START_OURS = "run: memorybus up"


class _Once(Retry):
    """Tries each command once, and notes on its error which server was asked."""

    def __init__(self, place: str, remedy: str) -> None:
        super().__init__(NoBackoff(), 0)
        self._notes = (place, remedy)

    def call_with_retry(self, do: Callable[[], _T], *args: Any, **options: Any) -> _T:
        """Call `do`; note the server on what it raises, and on the errors among its replies."""
        try:
            result = super().call_with_retry(do, *args, **options)
        except (RedisError, OSError) as error:
            self._note(error)
            raise
        for reply in result if isinstance(result, list) else ():
            if isinstance(reply, Exception):
                self._note(reply)
        return result

    def _note(self, error: Exception) -> None:
        if not _notes_of(error):  # connecting is a call within a call
            for note in self._notes:
                error.add_note(note)


def _notes_of(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def connect_redis(settings: Settings, *, timeout: float = TIMEOUT, single: bool = False) -> Redis:
    """Return a client of the log's Redis; it connects at its first command, unless `single`.

    `single` opens one connection for one thread, without a pool, which costs time. `timeout`
    (seconds) bounds connecting and each reply.
    """
    remedy = _start_yours(settings.url, "url") if settings.url else _START_OURS
    with redis_errors(redacted(settings.redis_url)):
        return _build_client(settings.redis_url, remedy, timeout, single)


def connect_jobs(settings: Settings, *, timeout: float = TIMEOUT) -> Redis:
    if not settings.jobs_url:
        return connect_redis(settings, timeout=timeout)
    remedy = _start_yours(settings.jobs_url, "jobs_url")
    return _build_client(settings.jobs_url, remedy, timeout, single=False)


def _start_yours(url: str, setting: str) -> str:
    where = f"memorybus.toml, MEMORYBUS_{setting.upper()}"
    return f"start the Redis at {redacted(url)}, or correct `{setting}` ({where})"


def _build_client(url: str, remedy: str, timeout: float, single: bool) -> Redis:
    options = {
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "retry": _Once(redacted(url), remedy),
        "driver_info": _driver_info(),
    }
    if is_cluster(url):
        return _cluster_client(url, options, single)
    if is_sentinel(url):
        return _sentinel_client(url, options, single)
    return Redis.from_url(url, single_connection_client=single, **options)


@cache
def _driver_info() -> DriverInfo:
    """Return how a connection names its library; redis-py would read that from disk each time."""
    return DriverInfo()


def _cluster_client(url: str, options: dict[str, Any], single: bool) -> Redis:
    nodes = Nodes(hosts_of(url), options | _url_options(url), single=single)
    if single:
        nodes.clients()  # connects, so that no later command has to
    return Cluster(nodes)


def _sentinel_client(url: str, options: dict[str, Any], single: bool) -> Redis:
    given = _url_options(url)
    asking = {
        "username": given.pop("sentinel_username", None),
        "password": given.pop("sentinel_password", None),
        **{name: value for name, value in given.items() if name.startswith("ssl")},
        **options,
        "socket_timeout": min(_SENTINEL_TIMEOUT, options["socket_timeout"]),
        "socket_connect_timeout": min(_SENTINEL_TIMEOUT, options["socket_timeout"]),
    }
    make: Any = Sentinel  # redis-py gives these two no types
    make_pool: Any = SentinelConnectionPool
    sentinels = make(hosts_of(url), sentinel_kwargs=asking)
    pool = make_pool(service_of(url), sentinels, **(options | given))
    client = Redis(connection_pool=pool, single_connection_client=single)
    client.auto_close_connection_pool = True
    return client


def _url_options(url: str) -> dict[str, Any]:
    parse: Any = parse_url
    given: dict[str, Any] = parse(single_server_url(url))
    tls = given.pop("connection_class", None) is SSLConnection
    del given["host"]
    return given | ({"ssl": True} if tls else {})


def ask_redis(ask: Callable[[], Any], where: str) -> Any:
    """Call `ask`, and translate the errors of redis-py into those of the bus."""
    try:
        return ask()
    except (RedisError, OSError) as error:
        raise translate_redis_error(error, where) from error


@contextmanager
def redis_errors(where: str) -> Iterator[None]:
    """Translate the errors of redis-py in a block into those of the bus."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise translate_redis_error(error, where) from error


@contextmanager
def connected(settings: Settings, *, timeout: float = TIMEOUT) -> Iterator[Redis]:
    """Connect to the log's Redis until the block ends; its errors there are those of the bus."""
    redis = connect_redis(settings, timeout=timeout)
    try:
        with redis_errors(redacted(settings.redis_url)):
            yield redis
    finally:
        redis.close()


def translate_redis_error(error: Exception, where: str) -> LogError:
    text = str(error)
    if "WRONGTYPE" in text:  # Redis 6.2 puts it at the end of a script's error
        return foreign_key_error(where)
    place, remedy = _notes_of(error) or (where if "://" in where else "Redis", "")
    if isinstance(error, AuthenticationError) or _SENTINEL_DENIED in text:
        return _access_denied_error(text, place)
    if isinstance(error, NoPermissionError):
        return AccessDenied(f"{place}: {text}", "allow it: redis-cli acl setuser")
    if refusal := find_refusal(text):
        return LogUnavailable(f"{place} {refusal.why}", refusal.remedy)
    text = text.partition(" : <redis")[0]  # without the objects in a sentinel's error
    return LogUnavailable(f"{place}: {text.rstrip('.') or type(error).__name__}", remedy)


def foreign_key_error(key: str) -> ForeignKey:
    return ForeignKey(
        f"{key}: holds something that memorybus did not write; rename or delete it, or set "
        f"another `namespace`"
    )


def _access_denied_error(text: str, where: str) -> AccessDenied:
    who, what = "Redis", text.rstrip(".")
    if _SENTINEL_DENIED in text:
        who, what = "a sentinel", "sentinel_username, sentinel_password"
    return AccessDenied(
        f"{where}: {who} wants another user or password than the url has ({what}); correct it: "
        f"--url, MEMORYBUS_URL or memorybus.toml"
    )
