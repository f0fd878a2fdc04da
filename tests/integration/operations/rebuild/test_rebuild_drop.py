"""Drops: what was begun and given up, what is kept, half of one, and names that come again (G8)."""

import json
import shutil
from typing import Any, Never

import pytest
from helpers.providers.recording import texts
from helpers.stories.rebuilding import (
    AFTER,
    NEXT,
    acquired,
    command,
    drop,
    fill,
    live,
    ran,
    serves,
    settled,
)
from helpers.stories.replaying import begun
from helpers.stories.scenario import NAME, home, recorded, worker
from memorybus.errors import LeaseLost
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Checkpoint, OwnedLane
from memorybus.registry.homes import Home
from memorybus.registry.instances import Instance, InstancePause, Live
from memorybus_console.cli import main
from memorybus_console.operations.copies.copies import mark_dropped
from memorybus_console.operations.copies.generations import find_free_name
from memorybus_console.operations.rebuild import rebuild
from memorybus_console.operations.rebuild.pause import LanesStalled
from memorybus_console.operations.rebuild.rebuild import plan_drop
from memorybus_console.operations.stores import Stores
from memorybus_workers.hosting import hosts

KEEP = InstancePause(f"kept for memorybus rebuild --rollback {NAME}: {NEXT} serves", state="kept")


def test_who_gives_up_a_rebuild_keeps_the_way_back(redis_client, make_settings):
    """G8: a drop takes what was begun alone, also if asked twice; with nothing begun, the rest."""
    settings = make_settings(providers=(NAME,))
    serves(settings, NEXT)
    with Stores(settings) as stores:
        stores.lanes.note_new_lanes(NAME)
        stores.add_instance(Instance(name=AFTER, provider=NAME, purpose="rebuild"))
        for _ in range(2):
            what = plan_drop(stores, NAME)
            assert (what.dropped, what.kept) == ((AFTER,), NAME)
            drop(settings)
            assert stores.instances.live()[NAME].previous == NAME
            assert stores.instances.all()[AFTER].dropped
        stores.instances.remove(AFTER)  # as workers do
        drop(settings)
        assert stores.instances.live()[NAME] == Live(NEXT, numbered=2)
        assert stores.lanes.count_remaining(NAME) == 0
        assert find_free_name(stores, NAME, stores.instances.read_view()) == f"{NAME}@3"


def test_half_a_drop_is_ended_by_the_same_command(redis_client, make_settings, monkeypatch):
    """G8: where the first generation's state could not be deleted, the next drop does so."""
    settings = make_settings(providers=(NAME,))
    serves(settings, NEXT)
    home(settings).mkdir(parents=True)

    def refuse(*_: object) -> Never:
        raise OSError("a disk")

    with Stores(settings) as stores:
        stores.lanes.note_new_lanes(NAME)
        with monkeypatch.context() as patch:
            patch.setattr(rebuild, "delete_state", refuse)
            with pytest.raises(OSError, match="a disk"):
                drop(settings)
        drop(settings)
        assert not home(settings).exists()
        assert stores.lanes.count_remaining(NAME) == 0


@pytest.mark.parametrize("before", [None, KEEP])
def test_a_drop_of_what_is_worked_on_changes_nothing(before, redis_client, make_settings):
    """G8: as long as somebody owns a lane of the first generation it is not dropped, but kept."""
    settings = make_settings(providers=(NAME,))
    serves(settings, NEXT)
    with Stores(settings) as stores:
        stores.lanes.note_new_lanes(NAME)
        if before is not None:
            stores.instances.set_pause(NAME, before)
        acquired(redis_client, settings, "w")
        with pytest.raises(LanesStalled, match="not given up"):
            drop(settings)
        assert stores.instances.live()[NAME].previous == NAME
        assert stores.instances.pauses().get(NAME) == before


def test_what_was_dropped_is_not_looked_into(ready, capsys):
    """G8: a dropped first generation is in no list, and `diff` makes no new state for it."""
    first, second = "builtin", "builtin@1"
    with Stores(ready) as stores:
        for name in (second, f"{first}@2"):
            stores.add_instance(Instance(name=name, provider=first, purpose="rebuild"))
        stores.lanes.note_new_lanes(first)
        assert stores.instances.swap(first, None, Live(f"{first}@2", second))
    shutil.rmtree(ready.provider_home(first), ignore_errors=True)
    assert main(["rebuild", "--drop", first, "--yes"]) == 0
    capsys.readouterr()
    assert main(["rebuild", "ls", "--json"]) == 0
    listed = [(one["name"], one["state"]) for one in json.loads(capsys.readouterr().out)]
    assert listed == [(second, "dropped"), (f"{first}@2", "live")]
    for gone in (first, second):
        assert main(["diff", f"{first}@2", gone, "--query", "x"]) == 2
        assert f"{gone} was dropped" in capsys.readouterr().err


def test_a_new_generation_is_called_as_no_provider_is(redis_client, make_settings):
    """G8: where a provider of its own is called as a generation, the next number is taken."""
    settings = make_settings(providers=(NAME, NEXT))
    with Stores(settings) as stores:
        assert find_free_name(stores, NAME, stores.instances.read_view()) == AFTER


def test_a_frozen_removal_leaves_a_later_copy(redis_client, make_settings, monkeypatch):
    """G8: a worker frozen while it removes a copy does nothing to a later one of that name."""
    settings = make_settings(providers=(NAME,))
    away = Home("f" * 32, "another-host", "/srv/memorybus", "7")
    later = Instance(name="cp", provider=NAME, made_at=2)

    def freeze(*_: Any) -> None:
        with Stores(settings) as stores:  # others end the removal, and the name is used again
            stores.instances.remove("cp")
            stores.homes.move("cp", away)
            stores.add_instance(later)

    monkeypatch.setattr(hosts, "delete_state", freeze)
    with Stores(settings) as stores:
        stores.add_instance(Instance(name="cp", provider=NAME, made_at=1))
        mark_dropped(stores, "cp")
        hosts.remove_dropped(settings, redis_client, [*stores.instances.all().values()], (), ())
        assert stores.instances.get("cp") == later
        assert stores.homes.all()["cp"] == away
        assert stores.lanes.count_remaining("cp") == settings.partitions


def test_epochs_of_a_name_that_comes_again(redis_client, make_settings):
    """G5: who owned a lane of a dropped copy cannot commit to a later copy of the same name."""
    settings = make_settings(partitions=1, **recorded("Keyed"))
    keys = Keys(settings.namespace)
    epochs = []
    for who in ("frozen", "another"):
        begun(settings, "cp")
        epochs.append(acquired(redis_client, settings, who, "cp"))
        redis_client.delete(keys.lease(0, "cp"))  # it expired
        if who == "frozen":
            with Stores(settings) as stores:
                stores.lanes.remove("cp")
                stores.instances.remove("cp")
    assert epochs[1] > epochs[0]
    stale = scripts.commit(OwnedLane(keys, 0, "cp", epochs[0]), Checkpoint("9-0", 7, b""))
    with pytest.raises(LeaseLost):
        scripts.run(redis_client, stale)
    with Stores(settings) as stores:
        assert stores.lanes.states("cp")[0].n == 0


@pytest.mark.timeout(120)
def test_what_is_asked_is_done_after_a_swap_that_was_cut_short(redis_client, make_settings, spawn):
    """G8: a command ends the swap of a killed one, and then does what it was asked for itself."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, "ab", 2)
    child = worker(spawn, settings, jobs=1)

    def cut(*words: str) -> None:
        dying = command(spawn, settings, *words, "--yes", crash_at="rebuild.swapped")
        assert dying.wait(60) == -9, dying.output()

    cut("rebuild", NAME)
    assert live(redis_client, settings) == NEXT
    other = ran(spawn, settings, "rebuild", NAME, "--except-session", "b", "--yes")["live"]
    settled(redis_client, settings, other)
    assert sorted(texts(home(settings, other))) == ["a 0", "a 1", "a remembers"]
    cut("rebuild", "--rollback", NAME)
    ended = ran(spawn, settings, "rebuild", "--rollback", NAME, "--yes")
    assert (ended["live"], ended["previous"]) == (NEXT, other), "the same command only ends it"
    assert child.terminate() == 0
