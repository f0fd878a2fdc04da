"""Where Redis is: what URLs are understood, what they are compared by, and what is never shown."""

from inspect import signature

import pytest
from memorybus.config.redis_urls import (
    hosts_of,
    options_of,
    place_of,
    redacted,
    service_of,
    single_server_url,
)
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.redis.connect import connect_redis
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.sentinel import SentinelManagedSSLConnection

JOBS = "redis://jobs:6379/0"
SENTINEL = "redis+sentinel://ann:s3cret@one:1,two/mymaster/2"
CLUSTER = "redis+cluster://ann:s3cret@one:7000,two:7001"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://one", "must begin with redis://"),
        ("redis://one:port", "the port must be a number"),
        ("redis+cluster://one:7000,two:s3cret", "the port must be a number"),
        ("redis+cluster://", "name the hosts"),
        ("redis+sentinel://one,,two/mymaster", "name the hosts"),
        ("redis+sentinel://one", "name the master"),
        ("redis+sentinel://one/mymaster/s3cret", "name the master"),
        ("redis+cluster://one/1", "no databases but 0"),
        ("redis://:s3cret/w@rd@one", "must be percent-encoded"),
        ("redis://:p@s3cret/w@rd@one", "must be percent-encoded"),
        ("rediss://one?ssl_ca_cert=s3cret", "no option 'ssl_ca_cert': did you mean 'ssl_ca_certs'"),
        ("redis://one?socket_timeot=s3cret", "did you mean 'socket_timeout'"),
        ("redis://one?ssl_ca_certs=s3cret", "'ssl_ca_certs' is one for rediss://"),
        ("unix:///redis.sock?socket_keepalive=1", "'socket_keepalive' is one for TCP"),
        ("redis://one?sentinel_password=s3cret", "is one for redis.sentinel://"),
        ("redis+sentinel://one/main?sentinel_pasword=s3cret", "mean 'sentinel_password'"),
        ("redis+cluster://one?clientname=s3cret", "did you mean 'client_name'"),
        ("redis://one?decode_responses=1", "no option 'decode_responses'"),
        ("redis://one?socket_timeout=s3cret", "socket_timeout must be a number"),
    ],
)
def test_a_url_nobody_can_read_is_refused(url, said):
    """A mistake is named when the settings are read, and no part that may be a secret is shown."""
    with pytest.raises(ConfigError, match=said) as refused:
        Settings(url=url, jobs_url=JOBS)
    assert "s3cret" not in str(refused.value)


def test_an_option_of_the_jobs_url_is_read_likewise():
    """The message names the setting, and the command that is next."""
    with pytest.raises(ConfigError, match=r"^jobs_url: redis:// has no option 'dbb'.*leave it out"):
        Settings(jobs_url="redis://one?dbb=2")


@pytest.mark.parametrize(
    ("url", "connection"),
    [
        ("redis://one", Connection),
        ("rediss://one", SSLConnection),
        ("unix:///redis.sock", UnixDomainSocketConnection),
        ("redis+sentinel://one/main", Connection),
        ("rediss+cluster://one", SSLConnection),
    ],
)
def test_each_option_is_one_that_redis_py_takes(url, connection):
    """What is not refused when settings are read does not fail when a connection is made."""
    taken = {name for kind in connection.__mro__ for name in signature(kind.__init__).parameters}
    ours = {name.removeprefix("sentinel_") for name in options_of(url)} - {"max_connections"}
    assert ours <= taken


def test_jobs_need_a_plain_redis():
    """RQ cannot work on a cluster: without another Redis for the jobs the settings are refused."""
    with pytest.raises(ConfigError, match="set jobs_url"):
        Settings(url=CLUSTER)
    with pytest.raises(ConfigError, match=r"jobs_url must begin with redis://"):
        Settings(jobs_url=CLUSTER)
    assert Settings(url=CLUSTER, jobs_url=SENTINEL).redis_jobs_url == SENTINEL


def test_hosts_and_the_masters_name():
    """Each host has its own port, or the usual one of what it is; an address may be an IPv6 one."""
    assert hosts_of(SENTINEL) == [("one", 1), ("two", 26379)]
    assert service_of(SENTINEL) == "mymaster"
    assert hosts_of(CLUSTER) == [("one", 7000), ("two", 7001)]
    assert hosts_of("redis+cluster://[::1]:7000,two") == [("::1", 7000), ("two", 6379)]


def test_one_server_keeps_what_is_said_beside_the_hosts():
    """Credentials, database and options are those of every server behind the URL."""
    assert single_server_url(f"{SENTINEL}?socket_keepalive=1").endswith(
        "//ann:s3cret@unknown/2?socket_keepalive=1"
    )
    assert single_server_url("rediss+cluster://a:p%40ss@one,two").startswith("rediss://a:p%40ss@")


def test_a_log_has_one_place():
    """Hosts in another order, or other credentials, lead to the same log; another name does not."""
    assert place_of(CLUSTER) == place_of("rediss+cluster://two:7001,one:7000/")
    assert place_of(SENTINEL) == place_of("redis+sentinel://two:26379,one:1/mymaster/2")
    assert place_of(SENTINEL) != place_of("redis+sentinel://two:26379,one:1/other/2")


@pytest.mark.parametrize("url", [SENTINEL, f"{CLUSTER}?sentinel_password=s3cret"])
def test_no_password_is_shown(url):
    """What people see of a URL holds the hosts and no credentials, wherever they stood."""
    assert "s3cret" not in redacted(url)
    assert "two" in redacted(url)


def test_every_server_behind_a_url_is_reached_alike(tmp_path):
    """TLS, credentials and database of a sentinel URL are the master's; theirs are their own."""
    url = (
        "rediss+sentinel://ann:p%40ss@one,two/mymaster/3?sentinel_password=quiet&ssl_cert_reqs=none"
    )
    client = connect_redis(Settings(url=url, data_dir=tmp_path), timeout=2.5)
    pool = client.connection_pool
    assert pool.connection_class is SentinelManagedSSLConnection
    told = {name: pool.connection_kwargs[name] for name in ("username", "password", "db")}
    assert told == {"username": "ann", "password": "p@ss", "db": 3}
    assert pool.connection_kwargs["socket_timeout"] == 2.5
    asked = pool.sentinel_manager.sentinels[1].connection_pool.connection_kwargs
    assert (asked["host"], asked["password"], asked["username"]) == ("two", "quiet", None)
    client.close()
