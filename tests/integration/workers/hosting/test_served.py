"""What a worker serves: copies that come, stand still, change, are swapped and go."""

import msgspec
import pytest
import redis
from helpers.processes.waiting import still, wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import (
    NAME,
    PATIENT,
    backlog,
    home,
    publish,
    recorded,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, ForeignKey
from memorybus.health.monitor import read_status
from memorybus.query.ranges import NumberRange, Plan
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home, Homes, delete_state
from memorybus.registry.instances import Instance, InstancePause, Live
from memorybus.registry.rebuild_lock import RebuildLock
from memorybus_console.operations.stores import Stores
from memorybus_workers.membership import balance

GENERATION = f"{NAME}@1"


def leases(client: redis.Redis, settings: Settings, name: str) -> int:
    """Count the lanes of an instance that have an owner."""
    return len(list(client.scan_iter(f"{settings.namespace}:*:lease:{name}")))


def generation(settings: Settings, **plan: object) -> Instance:
    """Make a copy known that follows the live one without an end."""
    made = Instance(name=GENERATION, provider=NAME, purpose="rebuild", plan=Plan(**plan))
    with Stores(settings) as stores:
        stores.instances.add(made)
    return made


def test_copies_come_while_a_worker_runs(redis_client, make_settings):
    """G8: a worker takes up a copy of what it serves, and no copy of anything else."""
    settings = make_settings(**recorded("Transactional"))
    publish(settings, "s", "one", "two")
    with thread_worker(settings):
        generation(settings)
        with Stores(settings) as stores:
            stores.instances.add(Instance(name="other@1", provider="other"))
        publish(settings, "s", "three")
        wait_until(lambda: texts(home(settings, GENERATION)) == ["one", "two", "three"], "filled")
    assert not home(settings, "other@1").exists()


def test_a_copy_gets_its_lanes_as_soon_as_it_is_open(redis_client, make_settings, monkeypatch):
    """G8: who waits for a copy waits for no heartbeat: the worker says at once that it is ready."""
    monkeypatch.setattr(balance, "DESERTED_SECONDS", 1_000.0)
    settings = make_settings(**PATIENT, **recorded("Transactional"))
    publish(settings, "s", "one")
    lock = RebuildLock(redis_client, Keys(settings.namespace), NAME, "rebuild", "ann")
    with lock, thread_worker(settings) as running:
        running._presence._beat_at = float("inf")  # no heartbeat is due any more
        generation(settings)
        wait_until(lambda: texts(home(settings, GENERATION)) == ["one"], "filled", 20)


def test_agents_never_hear_of_a_copy(redis_client, make_settings, spawn):
    """G8: recalls, tools and contributions are asked of the provider, whatever copies it has."""
    settings = make_settings(**recorded("Transactional"))
    publish(settings, "s", "a blue house")
    worker(spawn, settings, jobs=1)
    generation(settings)
    wait_applied(redis_client, settings, GENERATION)
    with Stores(settings) as stores:
        wait_until(lambda: GENERATION in stores.roster.instances(), "it is registered")
        assert stores.roster.recalling_providers() == [NAME]
        assert list(stores.roster.providers()) == [NAME]
        assert stores.roster.instances()[GENERATION].copy_of == NAME
    status = read_status(settings)
    assert [one.name for one in status.providers] == [NAME]
    assert [(one.name, one.copy_of) for one in status.copies] == [(GENERATION, NAME)]
    assert [job.queue.endswith(NAME) for job in status.jobs] == [True]


def test_a_held_instance_stands_still(redis_client, make_settings):
    """G8: a hold drains the lanes and gives them up; let go, they go on; nothing is lost."""
    settings = make_settings(**recorded("Transactional"))
    publish(settings, "s", "one")
    with thread_worker(settings), Stores(settings) as stores:
        wait_applied(redis_client, settings)
        stores.instances.set_pause(NAME, InstancePause("a test", "me", 1))
        wait_until(lambda: leases(redis_client, settings, NAME) == 0, "its lanes are given up")
        publish(settings, "s", "two")
        wait_until(still(lambda: texts(home(settings)), 0.5), "nothing is applied")
        assert texts(home(settings)) == ["one"]
        (one,) = read_status(settings).providers
        assert (one.paused, one.backlog > 0) == ("a test", True)
        stores.instances.resume(NAME)
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["one", "two"]


def test_a_changed_plan_is_followed(redis_client, make_settings):
    """G8: a copy whose end is moved goes on from there; none of its events comes twice."""
    settings = make_settings(partitions=1, **PATIENT, **recorded("Keyed"))
    publish(settings, "s", "one", "two", "three")
    made = generation(settings, spans={0: (NumberRange(1, 2),)})
    with thread_worker(settings), Stores(settings) as stores:
        wait_until(lambda: texts(home(settings, GENERATION)) == ["one"], "it is at its end")
        wait_until(lambda: leases(redis_client, settings, GENERATION) == 0, "and rests")
        assert stores.instances.change(made, msgspec.structs.replace(made, plan=Plan()))
        wait_applied(redis_client, settings, GENERATION)
    assert calls(home(settings, GENERATION)) == ["one", "two", "three"]


def test_a_copy_that_cannot_be_made_is_told(redis_client, make_settings):
    """G9: a copy with options that nobody knows delays nothing else, and status names it."""
    settings = make_settings(providers=("builtin",))
    with Stores(settings) as stores:
        stores.instances.add(Instance(name="bad", provider="builtin", options={"nonsense": 1}))
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).memory_written("add", "it goes on")
        assert bus.flush(timeout=25)
    with thread_worker(settings):
        wait_applied(redis_client, settings, "builtin")
        wait_until(lambda: read_status(settings).copies[0].failing, "it is told")


def test_a_dropped_copy_goes_with_all_it_has(redis_client, make_settings, spawn):
    """G8: two workers serve it; dropped, it leaves no key and no file, and does not come back."""
    settings = make_settings(**recorded("Transactional"))
    publish(settings, "s", "one", "!permanent two")
    for _ in range(2):
        worker(spawn, settings)
    made = generation(settings)
    wait_applied(redis_client, settings, GENERATION)
    with Stores(settings) as stores:
        stores.instances.set_pause(GENERATION, InstancePause("a test"))
        assert stores.instances.change(made, msgspec.structs.replace(made, dropped=True))
        wait_until(lambda: stores.instances.get(GENERATION) is None, "it is gone")
        assert GENERATION not in stores.instances.pauses()
    name = GENERATION.encode()
    wait_until(
        still(lambda: [key for key in redis_client.scan_iter() if name in key], 2.5),
        "nothing changes any more",
        20,
    )
    assert not [key for key in redis_client.scan_iter() if name in key]
    groups = [g["name"] for g in redis_client.xinfo_groups(Keys(settings.namespace).log(0))]
    assert name not in groups
    assert not home(settings, GENERATION).exists()
    assert home(settings).exists()


def test_a_dropped_copy_waits_for_its_home(redis_client, make_settings):
    """G8: only the worker where the state lies removes a local copy: the record stays till then."""
    settings = make_settings(
        providers=(NAME,), provider={NAME: {"kind": "helpers.providers.local:Local"}}
    )
    publish(settings, "s", "one")
    away = Home("f" * 32, "another-host", "/srv/memorybus", "7")
    with Stores(settings) as stores:
        stores.homes.move(GENERATION, away)
    made = generation(settings)
    with thread_worker(settings), Stores(settings) as stores:
        wait_applied(redis_client, settings)
        assert stores.instances.change(made, msgspec.structs.replace(made, dropped=True))
        beats = redis_client.hget(Keys(settings.namespace).workers, stores.roster.alive()[0].id)
        for _ in range(3):
            beats = wait_until(
                lambda seen=beats: _other(redis_client, settings, seen), "another heartbeat"
            )
        assert stores.instances.get(GENERATION) is not None
        Homes(redis_client, Keys(settings.namespace)).forget(GENERATION)
        wait_until(lambda: stores.instances.get(GENERATION) is None, "it is gone")
    assert not home(settings, GENERATION).exists()


def _other(client: redis.Redis, settings: Settings, seen: bytes) -> bytes | None:
    """Return the worker's heartbeat if it is another one."""
    (now,) = client.hvals(Keys(settings.namespace).workers)
    return None if now == seen else now


def test_who_is_live_calls_outside_tools(redis_client, make_settings):
    """G8: a copy leaves tools that act on the world alone, until it serves in the other's place."""
    settings = make_settings(
        providers=(NAME,), provider={NAME: {"kind": "helpers.providers.tooling:Mailing"}}
    )
    with (
        thread_worker(settings),
        Stores(settings) as stores,
        MemoryBus.connect(settings) as bus,
    ):
        wait_until(lambda: bus.tools().named("mail_send"), "the tools are noted on this host")
        session = bus.session("s", warm=False)
        session.call_tool("mail_send", {"text": "first"}, timeout=25)
        session.call_tool("note_add", {"text": "noted"}, timeout=25)
        assert texts(home(settings)) == ["first", "noted"]
        generation(settings)
        wait_applied(redis_client, settings, GENERATION)
        assert texts(home(settings, GENERATION)) == ["noted"]
        assert stores.instances.swap(NAME, None, Live(GENERATION, NAME))
        stores.instances.set_pause(NAME, InstancePause("replaced"))
        wait_until(lambda: leases(redis_client, settings, NAME) == 0, "the old one rests")
        session.call_tool("mail_send", {"text": "second"}, timeout=0.01)
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings, GENERATION)
    assert texts(home(settings, GENERATION)) == ["noted", "second"]
    assert texts(home(settings)) == ["first", "noted"]


def test_a_late_one_begins_where_it_is_told(redis_client, make_settings):
    """G8: the plan of an instance of the settings is followed, whatever its store has seen."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    publish(settings, "s", "one", "two", "three")
    with Stores(settings) as stores:
        plan = Plan(spans={0: (NumberRange(3),)})
        stores.instances.add(Instance(name=NAME, provider=NAME, plan=plan, purpose="added"))
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["two", "three"]
    assert backlog(redis_client, settings) == 0


@pytest.mark.parametrize("wrong", ["", "..", "../x", "a/b", ".x", "@1", "x" * 101, "ä", "a b"])
def test_names_that_are_none(wrong, make_settings):
    """A copy's name is a directory's: nothing that leads elsewhere is one."""
    settings = make_settings()
    (settings.data_dir / "kept").touch()
    with pytest.raises(ConfigError):
        delete_state(settings, wrong)
    assert (settings.data_dir / "kept").exists()


def test_a_record_that_cannot_be_read_blinds_nobody(redis_client, settings):
    """G8: beside a copy whose record is no record the others are served, listed and answer."""
    keys, one = Keys(settings.namespace), generation(settings)
    redis_client.hset(keys.instances, "broken", b'{"name":"broken","plan":{"rate":null}}')
    with Stores(settings) as stores:
        assert stores.instances.all() == stores.instances.read_view().all == {GENERATION: one}
        assert stores.instances.get(GENERATION) == one
        with pytest.raises(ForeignKey, match="instances"):
            stores.instances.get("broken")
        with pytest.raises(ConfigError, match="already"):
            stores.instances.add(Instance(name="broken", provider=NAME))
