"""The users of `deploy/redis`: each role's program works with its user, and may do nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from helpers.making import MakeServer
from helpers.processes.processes import Spawn
from helpers.redis.clusters import free_ports
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from memorybus_console.cli import main
from redis.exceptions import NoPermissionError

USERS = Path(__file__).parents[3] / "deploy/redis/users.acl"
WORKER = ("-m", "memorybus_console.cli", "worker", "--jobs", "1")
FOREIGN = {
    "agent": (
        ("flushall",),
        ("keys", "*"),
        ("config", "set", "maxmemory", "1"),
        ("hset", "mb:live", "builtin", "other"),
        ("hgetall", "mb:pauses"),
        ("xtrim", "mb:{p00}:log", "maxlen", "0"),
        ("set", "other", "1"),
    ),
    "worker": (("flushall",), ("keys", "*"), ("config", "set", "dir", "/"), ("set", "other", "1")),
    "operator": (("flushdb",), ("config", "set", "dir", "/"), ("acl", "list"), ("get", "other")),
    "metrics": (
        ("hset", "mb:live", "a", "b"),
        ("del", "mb:meta"),
        ("xadd", "mb:{p00}:log", "*", "a", "b"),
    ),
}
"""Commands that a role's user must not run."""

Url = Callable[[str], str]


@pytest.fixture(name="url")
def _url(make_redis: MakeServer) -> Url:
    """Return what makes a role's URL of a server that has the users of the file."""
    server = make_redis(port=free_ports(1)[0], bind="127.0.0.1", appendonly="yes")
    client = server.client()
    for line in USERS.read_text().splitlines():
        _, name, *rules = line.split()
        if name != "default":  # the one by which the fixtures reach the server
            client.execute_command("ACL", "SETUSER", name, *rules)
    port = server.options["port"]
    return lambda role: f"redis://{role}:CHANGE-{role.upper()}@127.0.0.1:{port}/0"


@pytest.fixture(name="settings")
def _settings(url: Url, make_settings: Callable[..., Settings], spawn: Spawn) -> Iterator[Settings]:
    """Return an agent's settings, while a worker with the worker's user serves two providers."""
    providers = ("builtin", "holographic")
    same = {"providers": providers, "namespace": "mb", "seal_after": 1.0}
    serving = make_settings(url=url("worker"), **same)
    child = spawn(*WORKER, env=to_environ(serving))
    child.wait_output('"ready":true')
    yield make_settings(url=url("agent"), data_dir=serving.data_dir, **same)
    assert child.terminate() == 0, child.output()
    assert "permission" not in child.output()


def _converse(settings: Settings) -> str:
    """Do what an agent does; return its block."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s-1", agent="gardener", user="ann")
        session.memory_written("add", "Ann's ladder stands behind the shed.", store="user")
        turn = session.turn_completed("Where is the ladder?", "Behind the shed.", ordinal=0)
        assert bus.flush("logged", timeout=40)
        session.queue_prefetch("Where is the ladder?")
        block = session.prefetch("Where is the ladder?", wait=20.0)
        assert session.call_tool("memory_search", {"query": "ladder"}, timeout=20.0)["ok"]
        session = session.undo(turn).compressed().branch("s-2")
        session.ended("done")
        assert bus.flush("logged", timeout=40)
        assert bus.problem == ""
        return block


def test_each_role_works_with_its_user(settings, url, capsys):
    """G9: an agent publishes and recalls, a worker applies and archives, an operator acts."""
    assert "behind the shed" in _converse(settings)
    place = ("--data-dir", str(settings.data_dir), "--url")
    for words in (
        *(("doctor",), ("events", "search", "ladder"), ("dlq", "ls"), ("archive", "run")),
        ("provider", "pause", "builtin", "--reason", "x"),
        ("provider", "resume", "builtin"),
        ("rebuild", "holographic", "--yes", "--reason", "x"),
        ("forget", "--user", "ann", "--yes", "--reason", "x"),
    ):
        assert main([*words, *place, url("operator")]) == 0, (words, capsys.readouterr())
    for words in (("status",), ("check",)):
        assert main([*words, *place, url("metrics")]) == 0, (words, capsys.readouterr())


@pytest.mark.parametrize("role", FOREIGN)
def test_a_role_may_not_run_what_another_needs(url, role):
    """G5: a program that is taken over can neither wipe the log nor act as an operator."""
    client = redis.Redis.from_url(url(role))
    for words in FOREIGN[role]:
        with pytest.raises(NoPermissionError):
            client.execute_command(*words)
    client.close()
