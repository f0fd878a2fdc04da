"""Lanes of a worker process whose parent saw it end: free at once, where that does no harm."""

import json
import signal
from typing import Any

import psutil
import pytest
import redis
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import NAME, environ, home, recorded, spread_sessions, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from memorybus.registry.lanes import encode_done_set
from memorybus.registry.reclaim import fatal_providers, freed_at_once, reclaim_lanes
from memorybus.registry.roster import ProviderInfo, Roster, WorkerInfo

LEASE = 30.0
LONG_LEASE: Any = {"partitions": 4, "lease": LEASE, "call_timeout": 20.0}
AT_ONCE = LEASE / 2
"""Far below a lease that was just renewed, and far above the second or two that it takes."""
SURE = ("transactional", "keyed")


def start(spawn: Spawn, settings: Settings, *words: str) -> tuple[Child, list[str]]:
    """Start `memorybus worker` or `up`; return it and its workers' ids."""
    child = spawn("-m", "memorybus", *words, "--jobs", "0", env=environ(settings))
    child.wait_output('"ready":')
    wait_until(lambda: "}" in child.output(), "it has said all of it")
    (said,) = [json.loads(line) for line in child.output().splitlines() if line.startswith("{")]
    return child, said["workers"]


def supervised(spawn: Spawn, settings: Settings) -> tuple[Child, list[str]]:
    """Start two workers under a supervisor."""
    return start(spawn, settings, "worker", "--processes", "2")


def owners(client: redis.Redis, settings: Settings, name: str = NAME) -> list[str]:
    """Return who holds each lane of a provider, "" for nobody."""
    keys = Keys(settings.namespace)
    held: Any = [client.get(keys.lease(p, name)) for p in range(settings.partitions)]
    return [(one or b":").decode().partition(":")[2] for one in held]


def pid_of(worker: str) -> int:
    """Return a worker's process id, by its own."""
    return int(worker.split("-")[-2])


def kill(worker: str) -> None:
    """SIGKILL a worker."""
    psutil.Process(pid_of(worker)).kill()


def say_everywhere(bus: MemoryBus, settings: Settings, text: str) -> None:
    """Publish an event to each partition, and see it in the log."""
    for name in spread_sessions(settings, settings.partitions):
        bus.session(name, warm=False).turn_completed(text, "ok")
    assert bus.flush("logged", 15)


def take(client: redis.Redis, keys: Keys, worker: str, ms: int = 60_000) -> Any:
    """Take the lane of partition 0; None if it is taken."""
    return scripts.run(client, scripts.acquire(keys, 0, NAME, worker, ms))


def note_tries(client: redis.Redis, keys: Keys, epoch: int, tries: bytes) -> None:
    """Note what the provider of partition 0 is called for."""
    noting = scripts.note_tries(OwnedLane(keys, 0, NAME, epoch), tries, b"")
    scripts.run(client, noting)


def buried(client: redis.Redis, keys: Keys, worker: str) -> int:
    """Bury a worker's lane of partition 0; return what the script says."""
    return int(scripts.run(client, scripts.reclaim(keys, 0, NAME, worker)))


# -- the script -----------------------------------------------------------------------------------


@pytest.fixture(name="keys")
def _keys(namespace: str) -> Keys:
    return Keys(namespace)


def test_a_burial_counts_the_death_once(redis_client, keys):
    """G5, G6: a dead owner's lane is free at once, with its death and what it was called for."""
    first = take(redis_client, keys, "h-1-a")
    note_tries(redis_client, keys, first.epoch, b'{"7":1}')
    assert take(redis_client, keys, "h-2-b") is None
    assert [buried(redis_client, keys, "h-1-a") for _ in range(2)] == [1, 0]
    second = take(redis_client, keys, "h-2-b")
    assert (second.epoch, second.deaths) == (first.epoch + 1, 1)
    assert second.suspects == b'{"7":1}'


def test_a_burial_frees_nobody_elses_lane(redis_client, keys):
    """G5: a lease that another took meanwhile stays, and so does a name that only looks alike."""
    take(redis_client, keys, "h-1-a", ms=1)
    wait_until(lambda: take(redis_client, keys, "xh-1-a"), "the first lease has run out")
    held = redis_client.get(keys.lease(0, NAME))
    assert buried(redis_client, keys, "h-1-a") == 0
    assert buried(redis_client, keys, "1-a") == 0
    assert redis_client.get(keys.lease(0, NAME)) == held
    assert redis_client.hget(keys.lane(0, NAME), "owner") == b"xh-1-a"


def test_a_lane_given_up_in_order_is_no_death(redis_client, keys):
    """G6: a worker that released its lanes before it ended has not died of an event."""
    first = take(redis_client, keys, "h-1-a")
    scripts.run(redis_client, scripts.release(first))
    assert buried(redis_client, keys, "h-1-a") == 0
    assert take(redis_client, keys, "h-2-b").deaths == 0


# -- the decision ---------------------------------------------------------------------------------


def test_only_classes_that_stand_a_late_call_are_freed():
    """G4: a request of the dead may still be under way to a `lookup` or `blind` backend."""
    classes = ("transactional", "keyed", "lookup", "blind")
    known = {one: ProviderInfo("kind", one, "shared") for one in classes}
    assert freed_at_once(known) == set(SURE)


@pytest.mark.parametrize(
    ("notes", "named"),
    [
        ([], set()),
        ([("one", 1), ("one", 1)], {"one"}),
        ([("one", 1), ("two", 1)], set()),
        ([("one", 1), ("two", 2), ("one", 1)], {"two"}),
    ],
    ids=["nobody was called", "one was", "two were", "one of them tried a suspect alone"],
)
def test_a_provider_is_blamed_if_no_other_comes_into_question(notes, named):
    """G6, G9: a death of which no call is known to be the cause sets no provider apart."""
    assert fatal_providers(notes) == named


def test_only_calls_that_are_not_done_are_blamed(redis_client, make_settings, keys):
    """G9: a note of calls that have returned since blames nobody for the death."""
    settings = make_settings(partitions=1, **recorded("Keyed"))
    roster = Roster(redis_client, keys)
    roster.register({NAME: ProviderInfo("kind", "keyed", "shared")})
    blames = []
    note = b'{"3":1}'
    for n, done, tries in (
        (2, b"", note),
        (3, b"", note),
        (2, encode_done_set(2, 1), note),
        (2, b"", b"damaged"),
    ):
        owner = take(redis_client, keys, "h-1-a")
        note_tries(redis_client, keys, owner.epoch, tries)
        at = scripts.Checkpoint(f"{n}-1", n, done)
        scripts.run(redis_client, scripts.commit(OwnedLane(keys, 0, NAME, owner.epoch), at))
        blames.append(reclaim_lanes(settings, "h-1-a"))
    assert blames == [{NAME}, set(), set(), set()]


def test_without_redis_nothing_is_freed(make_settings, caplog):
    """G9: a burial that finds no Redis says so and returns; the leases run out by themselves."""
    reclaim_lanes(make_settings(url="redis://127.0.0.1:1/0"), "h-1-a")
    assert "the lanes of h-1-a wait for their leases' end" in caplog.text


def test_the_roster_forgets_the_dead(redis_client, settings):
    """G9: who shares out the lanes does not wait until a buried worker has been silent."""
    roster = Roster(redis_client, Keys(settings.namespace))
    for name in ("h-1-a", "h-2-b"):
        roster.beat(WorkerInfo(name, "h", 1, 0, 0, (), 0))
    reclaim_lanes(settings, "h-1-a")
    assert [one.id for one in roster.alive()] == ["h-2-b"]


# -- whole processes ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Transactional", "Keyed"])
def test_a_sibling_takes_over_long_before_the_lease_ends(
    redis_client, make_settings, spawn, flag, kind
):
    """G3, G4, G9: kill -9 of a supervised worker costs its lanes a second or two, not a lease."""
    settings = make_settings(**LONG_LEASE, **recorded(kind))
    child, both = supervised(spawn, settings)
    wait_until(lambda: len(set(owners(redis_client, settings))) == 2, "shared out", 20)
    with MemoryBus.connect(settings) as bus:
        say_everywhere(bus, settings, f"!hang={flag} one")
        victim = wait_until(
            lambda: next((one for one in both if calls(home(settings), pid_of(one))), ""),
            "one is in a call",
            20,
        )
        kill(victim)
        begun = SYSTEM.monotonic()
        flag.unlink()
        wait_applied(redis_client, settings, timeout=AT_ONCE)
        print(f"all applied {SYSTEM.monotonic() - begun:.2f} s after the kill")
        wait_until(lambda: len(set(owners(redis_client, settings))) == 2, "shared out again", 20)
        say_everywhere(bus, settings, "two")
        wait_applied(redis_client, settings)
    assert victim not in owners(redis_client, settings)
    assert victim not in {one.id for one in read_status(settings).workers}
    assert sorted(texts(home(settings))) == [f"!hang={flag} one"] * 4 + ["two"] * 4
    assert child.terminate() == 0, child.output()
    assert owners(redis_client, settings) == [""] * 4


@pytest.mark.long
def test_a_late_call_is_waited_out(redis_client, make_settings, spawn):
    """G4: where a dead worker's request may still arrive, its lease runs to the end."""
    kinds = {"sure": "Keyed", "blind": "Blind", "lookup": "Lookup"}
    tables = {name: {"kind": f"helpers.providers.recording:{kind}"} for name, kind in kinds.items()}
    names = tuple(tables)
    settings = make_settings(
        partitions=4, lease=10.0, call_timeout=1.0, providers=names, provider=tables
    )
    _, (victim, _) = supervised(spawn, settings)
    for name in names:
        wait_until(lambda n=name: owners(redis_client, settings, n).count(victim), "shared", 20)
    kill(victim)
    wait_until(lambda: victim not in owners(redis_client, settings, "sure"), "freed", 9)
    for name in ("blind", "lookup"):
        assert victim in owners(redis_client, settings, name), "two thirds of a lease at least"
    for name in ("blind", "lookup"):
        wait_until(
            lambda n=name: not {victim, ""} & set(owners(redis_client, settings, n)),
            "taken when the lease has ended",
            settings.lease + 20,
        )


def test_up_buries_its_worker(redis_client, make_settings, spawn):
    """G9: the worker that `memorybus up` starts after a kill does not wait for the lease either."""
    settings = make_settings(**LONG_LEASE, **recorded("Transactional"))
    child, (victim,) = start(spawn, settings, "up", "--json")
    wait_until(lambda: owners(redis_client, settings) == [victim] * 4, "it owns all", 20)
    kill(victim)
    with MemoryBus.connect(settings) as bus:
        say_everywhere(bus, settings, "one")
        wait_applied(redis_client, settings, timeout=AT_ONCE)
    assert texts(home(settings)) == ["one"] * 4
    child.send(signal.SIGTERM)
    child.wait(20)
