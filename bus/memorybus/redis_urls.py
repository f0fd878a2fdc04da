"""Redis URLs: refused if unreadable, shown without credentials, compared by where they lead.

========================================================  =========================================
``redis://[user:pass@]host[:6379][/db]``, ``rediss://…``  one server, in the clear or over TLS
``unix://[user:pass@]/path/to/redis.sock[?db=0]``         one server of this machine
``redis+sentinel://[user:pass@]h1:26379,h2/name[/db]``    the master that the sentinels call `name`
``redis+cluster://[user:pass@]h1:7000,h2:7001``           a Redis Cluster, found by any of its nodes
========================================================  =========================================

``rediss+sentinel`` and ``rediss+cluster`` are the same over TLS. User and password are percent-
encoded. Sentinels that want credentials of their own get them as ``?sentinel_username=`` and
``sentinel_password=``; every other option after ``?`` is redis-py's.
"""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

from memorybus.errors import ConfigError

_ONE = ("redis://", "rediss://", "unix://")
_SENTINEL = ("redis+sentinel://", "rediss+sentinel://")
_CLUSTER = ("redis+cluster://", "rediss+cluster://")
_SERVICE = re.compile(r"/[^/]+(/\d*)?")
_SECRETS = ("password", "username", "sentinel_password", "sentinel_username", "ssl_password")
_SENTINEL_PORT = 26379
_CLUSTER_PORT = 6379


def check_urls(url: str, jobs_url: str) -> None:
    """Refuse URLs that no client could read, and jobs on a cluster; texts may hold passwords.

    Raises:
        ConfigError: names the setting, and what is wrong with it.
    """
    _check("url", url, (*_ONE, *_SENTINEL, *_CLUSTER))
    _check("jobs_url", jobs_url, (*_ONE, *_SENTINEL))
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
        raise ConfigError(
            f"{name}: the port must be a number, and a password must be percent-encoded"
        ) from None
    if url.startswith((*_SENTINEL, *_CLUSTER)) and not all(host for host, _ in hosts):
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


def is_sentinel(url: str) -> bool:
    """Say whether sentinels know where the server is."""
    return url.startswith(_SENTINEL)


def is_cluster(url: str) -> bool:
    """Say whether a URL leads to a Redis Cluster."""
    return url.startswith(_CLUSTER)


def hosts_of(url: str) -> list[tuple[str, int]]:
    """Return the hosts of a URL with their ports, in the order given.

    Raises:
        ValueError: a port is no number.
    """
    default = _SENTINEL_PORT if is_sentinel(url) else _CLUSTER_PORT
    hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
    parts = [urlsplit(f"//{host.strip()}") for host in hosts]
    return [(part.hostname or "", part.port or default) for part in parts]


def service_of(url: str) -> str:
    """Return the name by which sentinels know the master."""
    return urlsplit(url).path.strip("/").partition("/")[0]


def one_server(url: str) -> str:
    """Return the URL of a single server with the same credentials, database and options."""
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[0]
    credentials, at, _ = parts.netloc.rpartition("@")
    database = parts.path.strip("/").partition("/")[2] if is_sentinel(url) else ""
    return f"{scheme}://{credentials}{at}unknown/{database}?{parts.query}"


def place_of(url: str) -> str:
    """Return where a URL leads to, without credentials and options, which may change."""
    parts = urlsplit(url)
    if is_sentinel(url) or is_cluster(url):
        hosts = ",".join(sorted(f"{host}:{port}" for host, port in hosts_of(url)))
        return f"{hosts}{parts.path.rstrip('/')}"
    return f"{(parts.hostname or '').lower()}:{parts.port or ''}{parts.path}"


def redacted(url: str) -> str:
    """Return a Redis URL without its credentials, wherever they stand."""
    parts = urlsplit(url)
    credentials, _, host = parts.netloc.rpartition("@")
    shown = [(k, "***" if k in _SECRETS else v) for k, v in parse_qsl(parts.query)]
    netloc = f"***@{host}" if credentials else host
    query = urlencode(shown, safe="*/:")
    return f"{parts.scheme}://{netloc}{parts.path}{'?' if query else ''}{query}"
