"""Redis rewrites its append-only file when it is asked to, or what remains is named."""

from memorybus.clock import SYSTEM
from memorybus.log.removal import rewrite_redis_files


def test_redis_rewrites_its_file_and_is_awaited(make_redis, make_settings):
    """When the call returns, a deleted text is not in the append-only file any more."""
    server = make_redis(appendonly="yes")
    client, secret = server.client(), b"wolpertinger"
    client.set("k", secret, ex=60)
    client.delete("k")
    files = [path.read_bytes() for path in server.directory.rglob("*.aof")]
    assert any(secret in body for body in files)
    assert rewrite_redis_files(make_settings(url=server.url), 20.0, SYSTEM) == []
    files = [path.read_bytes() for path in server.directory.rglob("*.aof")]
    assert not any(secret in body for body in files)


def test_a_rewrite_that_cannot_be_had_is_named(make_redis, make_settings):
    """A user of Redis without the permission, and too short a wait, are named with what to do."""
    server = make_redis(appendonly="yes")
    settings = make_settings(url=server.url)
    [late] = rewrite_redis_files(settings, 0.0, SYSTEM)
    assert "run this again" in late
    server.client().execute_command("ACL", "SETUSER", "default", "-bgrewriteaof")
    [refused] = rewrite_redis_files(settings, 20.0, SYSTEM)
    assert refused.endswith("redis-cli bgrewriteaof")


def test_a_redis_without_such_a_file_needs_no_rewrite(make_redis, make_settings):
    """Nothing is asked of a Redis that keeps no append-only file."""
    assert (
        rewrite_redis_files(make_settings(url=make_redis(appendonly="no").url), 20.0, SYSTEM) == []
    )
