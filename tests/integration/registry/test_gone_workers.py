"""Workers that end without leaving: who they are is known until another one takes their place."""

from helpers.processes.waiting import wait_until
from helpers.stories.scenario import recorded, worker
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.health.finding import Finding
from memorybus.health.findings import findings_of
from memorybus.health.monitor import read_status
from memorybus.registry.roster import ALIVE_SECONDS, WorkerInfo, unreplaced

PATIENCE = 2 * ALIVE_SECONDS


def found(settings: Settings, code: str) -> list[Finding]:
    """Return the findings of a kind."""
    now_ms = SYSTEM.now_ms()
    findings = findings_of(read_status(settings), settings.providers, now_ms)
    return [one for one in findings if one.code == code]


def beat_of(settings: Settings, worker_id: str) -> str:
    """Return when a worker was last heard of."""
    return max(o.heartbeat_at for o in read_status(settings).workers if o.id == worker_id)


def test_a_killed_worker_is_a_finding_until_it_is_replaced(redis_server, make_settings, spawn):
    """G9: what kill -9 took is named beside those that live; one started in its place ends that."""
    settings = make_settings(**recorded("Keyed"))
    killed = worker(spawn, settings)
    (first,) = read_status(settings).workers
    worker(spawn, settings)
    begun = max(one.heartbeat_at for one in read_status(settings).workers)
    wait_until(lambda: beat_of(settings, first.id) > begun, "both have been seen side by side")
    killed.kill()
    (gone,) = wait_until(lambda: found(settings, "worker_gone"), "it is missed", PATIENCE)
    assert gone.subject == first.id
    assert "disappeared" in gone.text
    worker(spawn, settings)
    wait_until(lambda: not found(settings, "worker_gone"), "it is replaced")


def test_the_last_worker_is_named_where_none_is_alive(redis_server, make_settings, spawn):
    """G9: without any worker there is one finding, which names the one that disappeared."""
    settings = make_settings(**recorded("Keyed"))
    child = worker(spawn, settings)
    (last,) = read_status(settings).workers
    child.kill()
    (none,) = wait_until(lambda: found(settings, "no_worker"), "it is missed", PATIENCE)
    assert f"worker {last.id} disappeared" in none.text
    assert none.since
    assert found(settings, "worker_gone") == []


def test_a_worker_that_leaves_is_not_missed(redis_server, make_settings, spawn):
    """A worker that ends in order has not disappeared."""
    settings = make_settings(**recorded("Keyed"))
    assert worker(spawn, settings).terminate() == 0
    assert read_status(settings).gone == []


def info(name: str, beat: int, started: int, host: str = "h") -> WorkerInfo:
    """Return a worker's heartbeat."""
    return WorkerInfo(name, host, 1, 0, 0, ("p",), beat, started_at=started)


def test_each_newcomer_replaces_one_worker_of_its_host():
    """Of two killed workers one is still missed after one start, and none of another host."""
    old, older, far = info("a", 20, 1), info("b", 10, 1), info("c", 10, 1, host="far")
    assert unreplaced([old, older, far], [info("d", 99, 30)]) == [far, old]
    assert unreplaced([old], [info("d", 99, 5)]) == [old]
