"""Removals that were cut short, or undone by hand, and what stands still after a killed command."""

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.stories.rebuilding import AFTER, NEXT, acquired, working
from helpers.stories.scenario import NAME, recorded
from memorybus.config.settings import Settings
from memorybus.processes import signals
from memorybus.processes.reports import InstanceDescription
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, InstancePause, Live
from memorybus.registry.roster import WorkerInfo
from memorybus.testing import FakeClock
from memorybus_console.cli import main
from memorybus_console.operations.providers import removal
from memorybus_console.operations.providers.lifecycle import pause_instance, resume_instance
from memorybus_console.operations.rebuild import rebuild
from memorybus_console.operations.stores import Stores

GONE = InstancePause(f"dropped: {NEXT} serves {NAME}", state="dropped")


@pytest.fixture(name="settings")
def _settings(redis_client: redis.Redis, make_settings: MakeSettings) -> Settings:
    return make_settings(**recorded("Transactional"))


def test_what_was_removed_with_its_generation_goes_on(settings):
    """G8: configured again by hand, a resume lets it go on, and no recall names what is gone."""
    with Stores(settings) as stores:
        stores.instances.swap(NAME, None, Live(NEXT))
        stores.instances.set_pause(NAME, InstancePause("removed: x", state="removed"))
        again = pause_instance(stores, NAME, "quota", "ann")
        assert (again.name, again.changed, again.reason) == (NAME, False, "removed: x")
        done = resume_instance(stores, NAME)
        assert (done.name, done.changed, done.serves) == (NAME, True, "")
        assert (stores.instances.pauses(), stores.instances.live()) == ({}, {})


def test_a_resume_leaves_the_way_back(settings):
    """G8: a resume of what serves again after a rollback keeps the generation that is kept."""
    entry = Live(NAME, NEXT, back=True)
    with Stores(settings) as stores:
        stores.add_instance(Instance(name=NEXT, provider=NAME, purpose="rebuild"))
        stores.instances.swap(NAME, None, entry)
        pause_instance(stores, NAME, "quota", "ann")
        assert resume_instance(stores, NAME).changed
        assert stores.instances.live() == {NAME: entry}


class Interrupted(FakeClock):
    """Somebody presses Ctrl-C as soon as anything is waited for."""

    def sleep(self, seconds: float) -> None:
        """Be interrupted."""
        raise KeyboardInterrupt


def test_a_removal_that_is_interrupted_leaves_all_as_it_was(redis_client, settings):
    """G8: Ctrl-C while lanes are waited for: everything stands still, or goes on, as before."""
    with Stores(settings) as stores:
        stores.add_instance(Instance(name=NEXT, provider=NAME, purpose="rebuild"))
        stores.instances.swap(NAME, None, Live(NEXT))
        stores.instances.set_pause(NAME, GONE)
        stores.roster.beat(WorkerInfo("host-7-abc", "host", 7, 0, 1, (NAME,), 0))
        acquired(redis_client, settings, "host-7-abc", NEXT)
        what = removal.plan_removal(stores, NAME, delete_state=False)
        what = msgspec.structs.replace(what, block="")
        assert (what.names, what.workers) == ([NAME, NEXT], ["host-7-abc"])
        with pytest.raises(KeyboardInterrupt):
            removal.remove_provider(stores, what, "x", "ann", Interrupted())
        assert stores.instances.pauses() == {NAME: GONE}
        assert list(stores.instances.all()) == [NEXT]


@pytest.mark.parametrize("kind", ["lane", "lease", "parked", "dead"])
def test_a_key_of_another_program_is_named(kind, redis_client, settings, monkeypatch, capsys):
    """G10: a removal names the key that stops it, and goes on without that."""
    for name in ("url", "namespace", "data_dir"):
        monkeypatch.setenv(f"MEMORYBUS_{name.upper()}", str(getattr(settings, name)))
    keys = Keys(settings.namespace)
    redis_client.hset(keys.lane(1, "old"), "n", 1)
    foreign = getattr(keys, kind)(0, "old")
    redis_client.sadd(foreign, "x")
    removal_of_old = ["provider", "remove", "old", "--reason", "x", "--yes"]
    assert main(removal_of_old) == 1
    assert f"{foreign}: holds something that memorybus did not write; rename or delete it" in (
        capsys.readouterr().err
    )
    redis_client.delete(foreign)
    assert main(removal_of_old) == 0


def test_ctrl_c_says_how_a_removal_goes_on(settings, monkeypatch, capsys):
    """G10: whatever was done by then, the same command does the rest."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("url", "namespace", "data_dir"):
        monkeypatch.setenv(f"MEMORYBUS_{name.upper()}", str(getattr(settings, name)))
    monkeypatch.setattr(removal, "plan_removal", interrupted)
    assert main(["provider", "remove", NAME, "--reason", "x", "--yes"]) == signals.INTERRUPTED
    assert f"the same command removes what is left of {NAME}" in capsys.readouterr().err


def test_a_drop_says_what_stays_in_a_backend(settings, monkeypatch):
    """G8: a shared state is not said to be gone: it is named by its place, to be deleted there."""
    what = InstanceDescription("rec", "lookup", "shared", False, {"collection": "one"})
    monkeypatch.setattr(rebuild, "describe_instance", lambda *_: what)
    with Stores(settings) as stores:
        stores.add_instance(
            Instance(name=NEXT, provider=NAME, purpose="rebuild", options={"collection": "two"})
        )
        drop = rebuild.plan_drop(stores, NAME)
    assert drop.shared == {NEXT: "collection=two"}
    assert f"of {NEXT} (collection=two): delete it there" in drop.headline()
    unshared = msgspec.structs.replace(drop, shared={})
    assert unshared.headline() == f"would drop: {NEXT} with all state; {NAME} stays"


@pytest.mark.parametrize("first", [None, GONE])
def test_who_served_before_stands_still(settings, first):
    """G8: a generation that a killed rollback let go on stands still when another one serves."""
    with working(settings, "rebuild") as work:
        instances = work.stores.instances
        for name in (NEXT, AFTER):
            work.stores.add_instance(Instance(name=name, provider=NAME, purpose="rebuild"))
        instances.swap(NAME, None, Live(AFTER, NEXT, leaving=NEXT))
        if first:
            instances.set_pause(NAME, first)
        work.finish_killed_swap(NAME, "ann")
        pauses = instances.pauses()
    assert pauses.keys() == {NAME, NEXT}
    assert pauses[NEXT].state == "kept"
    assert pauses[NAME] == first if first else pauses[NAME].state == "kept"
