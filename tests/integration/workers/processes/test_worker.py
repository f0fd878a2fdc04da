"""The worker process: start, refusals, end."""

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from helpers.processes.processes import Spawn, children_of
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import (
    agent,
    environ,
    home,
    recalling,
    recorded,
    thread_worker,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, load
from memorybus.health.monitor import read_status
from memorybus.ids import new_rng
from memorybus.log.stream import EventLog
from memorybus.redis.keys import Keys
from memorybus_workers.watch import tail as tail_module
from memorybus_workers.watch.tail import Tail

BLOCK = 40.0
"""Seconds for which a read waits for news, where a test has it end sooner."""


def refused(spawn: Spawn, settings: Settings, code: int = 2) -> str:
    """Return what a worker says that cannot start; it must end by itself, with an exit code."""
    child = spawn("-m", "memorybus_workers", "worker", env=environ(settings))
    assert child.wait() == code, child.output()
    assert "Traceback" not in child.output()
    return child.output()


def test_a_wrong_partition_count_is_refused(redis_client, make_settings, spawn):
    """G3: a worker with another partition count ends with the remedy."""
    settings = make_settings(**recorded("Blind"))
    redis_client.hset(Keys(settings.namespace).meta, "partitions", "4")
    assert "partitions = 4" in refused(spawn, settings)


def test_an_evicting_server_is_refused(make_redis, make_settings, spawn):
    """G1: a worker on a server that may drop keys ends with the remedy."""
    url = make_redis(maxmemory_policy="volatile-lru").url
    assert "noeviction" in refused(spawn, make_settings(url=url, **recorded("Blind")))


@pytest.mark.parametrize("which", ["meta", "providers"])
def test_a_foreign_key_is_named(redis_client, make_settings, spawn, which):
    """G10: somebody else's value at a key of the whole log is named by key."""
    settings = make_settings(**recorded("Blind"))
    key = str(getattr(Keys(settings.namespace), which))
    redis_client.set(key, "theirs", ex=60)
    assert key in refused(spawn, settings)


def test_a_foreign_heartbeat_key_is_named(redis_client, make_settings, spawn):
    """G9: a worker that cannot show that it lives says why, and applies events all the same."""
    settings = make_settings(**recorded("Transactional"))
    key = Keys(settings.namespace).workers
    redis_client.set(key, "theirs", ex=60)
    child = worker(spawn, settings, wait=False)
    child.wait_output(key)
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("hello", "")
        wait_until(lambda: texts(home(settings)) == ["hello"], "applied")


def test_an_unknown_provider_is_refused(redis_server, make_settings, spawn):
    """G10: a provider nobody knows ends the worker with the nearest name."""
    assert "builtin" in refused(spawn, make_settings(providers=("builtim",)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_as_told(redis_client, make_settings, spawn, number):
    """G5: told to end, a worker gives its lanes up, ends its recall processes, exits with 0."""
    settings = make_settings(**recorded("Transactional"))
    child = worker(spawn, settings, jobs=1)
    jobs = recalling(settings, psutil.Process(child.pid))
    child.send(number)
    assert child.wait() == 0, child.output()
    wait_until(lambda: not jobs.is_running(), "the recall process has ended")
    assert not list(redis_client.scan_iter("*lease*"))
    assert read_status(settings).workers == []


def test_an_idle_worker_has_no_recall_process(redis_client, make_settings, spawn):
    """G10: a recall process is started when a recall is asked for, and runs from then on."""
    settings = make_settings(**recorded("Transactional"))
    process = psutil.Process(worker(spawn, settings, jobs=1).pid)
    assert children_of(process.pid) == []
    jobs = recalling(settings, process)
    assert settings.providers[0] in jobs.cmdline()
    assert children_of(process.pid) == [jobs]


def test_recall_processes_end_with_a_killed_worker(redis_server, make_settings, spawn):
    """G9: a recall process never outlives its worker, and a dead one is started again."""
    settings = make_settings(**recorded("Transactional"))
    child = worker(spawn, settings, jobs=1)
    jobs = recalling(settings, psutil.Process(child.pid))
    jobs.kill()
    again = wait_until(
        lambda: [p for p in children_of(child.pid) if p.pid != jobs.pid],
        "another is started",
    )[0]
    child.kill()
    wait_until(lambda: again.pid not in {p.pid for p in spawn.descendants()}, "it has ended")


def test_a_worker_waits_for_redis(make_redis, make_settings, spawn):
    """G9: a worker started before Redis waits, says so, and works when Redis comes."""
    server = make_redis(appendonly="yes")
    server.kill()
    settings = make_settings(url=server.url, **recorded("Transactional"))
    child = worker(spawn, settings, wait=False)
    child.wait_output("waiting for Redis")
    server.start()
    child.wait_output('"ready":true')
    assert "Traceback" not in child.output()
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("hello", "")
        wait_until(lambda: texts(home(settings)) == ["hello"], "applied")


def test_a_worker_sends_what_dead_agents_left(make_redis, make_settings, spawn, monkeypatch):
    """G1: spools of dead processes are sent and removed by the worker, in order."""
    server = make_redis(appendonly="yes")
    server.kill()
    settings = make_settings(url=server.url, **recorded("Transactional"))
    agents = [agent(spawn, settings, "--session", name, "--hold") for name in ("a", "b")]
    for child in agents:
        child.wait_output("holding")
        child.kill()
    server.start()
    monkeypatch.setattr("memorybus_workers.processes.worker._ADOPT_SECONDS", 0.3)
    with thread_worker(settings):
        wait_until(lambda: len(texts(home(settings))) == 40, "all are applied")
        wait_until(lambda: not list(settings.spool_dir.iterdir()), "the spools and locks are gone")
        client, names = server.client(), f"{settings.namespace}:*:producers"
        wait_until(lambda: not list(client.scan_iter(names)), "producers are forgotten")


def test_a_provider_that_cannot_open_is_tried_again(redis_server, make_settings, spawn):
    """G6: a home that cannot be written pauses its provider; when it can, events are applied."""
    settings = make_settings(**recorded("Transactional"))
    blocked: Path = home(settings)
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a directory should be")
    child = worker(spawn, settings)
    child.wait_output("nothing is parked")
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("hello", "")
        assert bus.flush(timeout=25)
        blocked.unlink()
        wait_until(lambda: texts(home(settings)) == ["hello"], "applied")


def test_settings_reach_the_recall_process(make_settings, tmp_path):
    """G9: what a worker was told, its children find: the environment carries every setting."""
    settings = make_settings(
        url="unix:///tmp/a b", provider={"x": {"kind": "k", "n": 1, "s": 'ä"\n'}}, providers=("x",)
    )
    given: Any = environ(settings)
    given = {name: value for name, value in given.items() if name != "PYTHONPATH"}
    assert load(environ=given, directory=tmp_path) == settings


def test_a_read_that_waits_for_news_holds_up_no_end(redis_client, settings, monkeypatch):
    """A worker that ends cuts off its blocking read, and waits less than that would."""
    monkeypatch.setattr(tail_module, "_BLOCK_SECONDS", BLOCK)
    EventLog(redis_client, settings).open()
    tail = Tail(settings, SYSTEM, new_rng(), lambda _: None)
    tail.start()
    wait_until(lambda: _waiting(redis_client), "the read waits")
    begun = SYSTEM.monotonic()
    tail.stop()
    assert SYSTEM.monotonic() - begun < BLOCK / 2
    wait_until(lambda: not _waiting(redis_client), "Redis knows it", BLOCK / 2)


def test_an_end_that_no_read_tells_of_is_noticed(redis_client, settings, monkeypatch):
    """G9: entries behind an end that went back, as after a restart of Redis, wake the lanes too."""
    monkeypatch.setattr(tail_module, "_BLOCK_SECONDS", 0.05)
    monkeypatch.setattr(tail_module, "_RECHECK_SECONDS", 0.0)
    EventLog(redis_client, settings).open()
    log = Keys(settings.namespace).log(3)
    redis_client.xadd(log, {"n": 1, "e": "x"}, id="9-1")
    told: list[set[int]] = []
    tail = Tail(settings, SYSTEM, new_rng(), told.append)
    tail.start()
    wait_until(lambda: bool(told), "it has seen the ends")
    redis_client.delete(log)
    redis_client.xadd(log, {"n": 1, "e": "x"}, id="5-1")
    wait_until(lambda: {3} in told, "it tells of an earlier end")
    tail.stop()


def _waiting(client: redis.Redis) -> bool:
    return any(one["cmd"] == "xread" and "b" in one["flags"] for one in client.client_list())
