"""Checks Redis URLs, shows them without credentials, and compares where they lead.

========================================================  =========================================
``redis://[user:pass@]host[:6379][/db]``, ``rediss://…``  one server, in the clear or over TLS
``unix://[user:pass@]/path/to/redis.sock[?db=0]``         one server of this machine
``redis+sentinel://[user:pass@]h1:26379,h2/name[/db]``    the master that the sentinels call `name`
``redis+cluster://[user:pass@]h1:7000,h2:7001``           a Redis Cluster, found by any of its nodes
========================================================  =========================================

``rediss+sentinel`` and ``rediss+cluster`` are the same over TLS. User and password are percent-
encoded. Credentials of the sentinels themselves are given as ``?sentinel_username=`` and
``sentinel_password=``. The other options after ``?`` are the ones of redis-py that make sense here;
`options_of` returns them.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, urlsplit

from memorybus.errors import ConfigError
from memorybus.text.redact import masked

_SINGLE_SERVER_SCHEMES = ("redis://", "rediss://", "unix://")
_SENTINEL_SCHEMES = ("redis+sentinel://", "rediss+sentinel://")
_CLUSTER_SCHEMES = ("redis+cluster://", "rediss+cluster://")
_SERVICE = re.compile(r"/[^/]+(/\d*)?")
_OPTIONS: Mapping[str, Callable[[str], object]] = {
    "username": str,
    "password": str,
    "db": int,
    "client_name": str,
    "socket_timeout": float,
    "socket_connect_timeout": float,
    "health_check_interval": int,
    "max_connections": int,
}
_TCP: Mapping[str, Callable[[str], object]] = {"socket_keepalive": str}
_TLS: Mapping[str, Callable[[str], object]] = {
    "ssl_keyfile": str,
    "ssl_certfile": str,
    "ssl_password": str,
    "ssl_cert_reqs": str,
    "ssl_ca_certs": str,
    "ssl_ca_path": str,
    "ssl_ca_data": str,
    "ssl_check_hostname": str,
    "ssl_min_version": int,
    "ssl_ciphers": str,
}
_SENTINELS: Mapping[str, Callable[[str], object]] = {
    "sentinel_username": str,
    "sentinel_password": str,
}
_ENCODING_HINT = "a password must be percent-encoded: %40 for @, %2F for /"
_SENTINEL_PORT = 26379
_CLUSTER_PORT = 6379


def check_urls(url: str, jobs_url: str) -> None:
    """Refuse URLs that no client can read, and jobs on a cluster; errors show no password."""
    _check("url", url, (*_SINGLE_SERVER_SCHEMES, *_SENTINEL_SCHEMES, *_CLUSTER_SCHEMES))
    _check("jobs_url", jobs_url, (*_SINGLE_SERVER_SCHEMES, *_SENTINEL_SCHEMES))
    if is_cluster(url) and not jobs_url:
        raise ConfigError(
            "url leads to a Redis Cluster, which holds the log but cannot hold RQ's jobs: set "
            "jobs_url to a plain Redis (redis://…, or redis+sentinel://…)"
        )


def _check(name: str, url: str, schemes: tuple[str, ...]) -> None:
    if url and not url.startswith(schemes):
        raise ConfigError(f"{name} must begin with {', '.join(schemes)}")
    try:
        hosts = hosts_of(url)
    except ValueError:
        raise ConfigError(f"{name}: the port must be a number, and {_ENCODING_HINT}") from None
    if "@" in urlsplit(url).path and not url.startswith("unix://"):
        raise ConfigError(f"{name}: {_ENCODING_HINT}")
    if url.startswith((*_SENTINEL_SCHEMES, *_CLUSTER_SCHEMES)) and not all(
        host for host, _ in hosts
    ):
        raise ConfigError(
            f"{name}: name the hosts, as in {url.partition('://')[0]}://one:7000,two:7000"
        )
    if is_sentinel(url) and not _SERVICE.fullmatch(urlsplit(url).path):
        raise ConfigError(
            f"{name}: name the master, and its database as a number if need be, as in "
            f"redis+sentinel://host:26379/mymaster/0"
        )
    if is_cluster(url) and urlsplit(url).path not in ("", "/", "/0"):
        raise ConfigError(f"{name}: a Redis Cluster has no databases but 0")
    _check_options(name, url)


def _check_options(name: str, url: str) -> None:
    """Refuse options with which redis-py would fail to connect; values are not shown."""
    parse = options_of(url)
    for option, value in parse_qsl(urlsplit(url).query):
        if option not in parse:
            scheme = url.partition("://")[0]
            raise ConfigError(
                f"{name}: {scheme}:// has no option {option!r}: {_advice(option, parse)}; correct "
                f"it or leave it out"
            )
        try:
            parse[option](value)
        except ValueError:
            raise ConfigError(f"{name}: the option {option} must be a number") from None


def _advice(option: str, known: Mapping[str, object]) -> str:
    every = (*known, *_TCP, *_TLS, *_SENTINELS)
    near = difflib.get_close_matches(option, every, n=1, cutoff=0.0)[0]
    if near in known:
        return f"did you mean {near!r}"
    where = "rediss://" if near in _TLS else "redis+sentinel://" if near in _SENTINELS else "TCP"
    return f"{near!r} is one for {where}"


def options_of(url: str) -> Mapping[str, Callable[[str], object]]:
    """Return the options that a URL may have after ``?``, each with the function that parses it."""
    tcp = {} if url.startswith("unix://") else _TCP
    tls = _TLS if url.startswith("rediss") else {}
    return {**_OPTIONS, **tcp, **tls, **(_SENTINELS if is_sentinel(url) else {})}


def is_sentinel(url: str) -> bool:
    return url.startswith(_SENTINEL_SCHEMES)


def is_cluster(url: str) -> bool:
    return url.startswith(_CLUSTER_SCHEMES)


def hosts_of(url: str) -> list[tuple[str, int]]:
    default = _SENTINEL_PORT if is_sentinel(url) else _CLUSTER_PORT
    hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
    parts = [urlsplit(f"//{host.strip()}") for host in hosts]
    return [(part.hostname or "", part.port or default) for part in parts]


def service_of(url: str) -> str:
    """Return the name by which sentinels know the master."""
    return urlsplit(url).path.strip("/").partition("/")[0]


def single_server_url(url: str) -> str:
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[0]
    credentials, at, _ = parts.netloc.rpartition("@")
    database = parts.path.strip("/").partition("/")[2] if is_sentinel(url) else ""
    return f"{scheme}://{credentials}{at}unknown/{database}?{parts.query}"


def place_of(url: str) -> str:
    parts = urlsplit(url)
    if is_sentinel(url) or is_cluster(url):
        hosts = ",".join(sorted(f"{host}:{port}" for host, port in hosts_of(url)))
        return f"{hosts}{parts.path.rstrip('/')}"
    return f"{(parts.hostname or '').lower()}:{parts.port or ''}{parts.path}"


def redacted(url: str) -> str:
    """Return a Redis URL without its credentials, wherever it has them."""
    return masked(url)
