"""Verify: it changes nothing, and what it says is so; copies have states of their own (G8)."""

from pathlib import Path

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.rebuilding import damage, fill, ran, settled
from helpers.stories.scenario import NAME, home, recorded, say, thread_worker, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance
from memorybus.registry.rebuild_lock import RebuildLock
from memorybus_console.operations.copies.generations import find_free_name
from memorybus_console.operations.stores import Stores

CHECKED = f"{NAME}.verify@1"


@pytest.mark.timeout(120)
def test_no_command_fills_a_state_that_is_there(redis_client, make_settings, spawn):
    """G8: a shared state gets no second writer: not by verify, nor by a place that is taken."""
    settings = make_settings(**recorded("KeyedShared", collection="one"))
    fill(settings, "ab", 3)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    one, two = (home(settings, f"collection-{name}") for name in ("one", "two"))
    damage(one, "delete from effects where text = 'b remembers'")
    assert "its state is shared" in ran(spawn, settings, "verify", NAME, code=1)
    ours = ("replay", "--provider", NAME, "--into", "copy", "--set", "collection=one", "--yes")
    assert f"would write where {NAME} does" in ran(spawn, settings, *ours, code=2)
    rebuild = ("rebuild", NAME, "--set", "collection=two", "--yes")
    done = ran(spawn, settings, *rebuild)
    settled(redis_client, settings, done["live"])
    damage(two, "delete from effects where text = 'a remembers'")
    assert f"where {done['live']} does" in ran(spawn, settings, *rebuild, code=2)
    assert "its state is shared" in ran(spawn, settings, "verify", NAME, code=1)
    assert (len(texts(one)), len(texts(two))) == (7, 7)
    assert child.terminate() == 0


def test_what_a_killed_verification_made_goes(redis_client, make_settings):
    """G8: its copy stays while the command lives; then a worker removes it, with its state."""
    settings = make_settings(**recorded("Transactional"))
    published(settings, "s", "one", "two")
    lock = RebuildLock(redis_client, Keys(settings.namespace), NAME, "verification", "ann")
    with thread_worker(settings), Stores(settings) as stores:
        with lock:
            stores.add_instance(Instance(name=CHECKED, provider=NAME, purpose="verify"))
            wait_applied(redis_client, settings, CHECKED)
            made = stores.instances.get(CHECKED)
            assert made is not None
            assert not made.dropped
        wait_until(lambda: stores.instances.get(CHECKED) is None, "it is gone")
        assert stores.lanes.count_remaining(CHECKED) == 0
    assert not home(settings, CHECKED).exists()
    assert texts(home(settings)) == ["one", "two"]


def published(settings: Settings, session: str, *words: str) -> None:
    """Publish turns of one session."""
    with MemoryBus.connect(settings) as bus:
        say(bus, session, *words)
        assert bus.flush("logged", 25)


def test_a_name_of_which_something_is_left_is_not_given(redis_client, make_settings):
    """G8: after Redis was lost a generation's files are still there: the next one is another."""
    settings = make_settings(**recorded("Transactional"))
    taken(home(settings, f"{NAME}@1"))
    taken(home(settings, CHECKED))
    redis_client.hset(Keys(settings.namespace).lane(3, f"{NAME}@2"), "epoch", 1)
    with Stores(settings) as stores:
        view = stores.instances.read_view()
        assert find_free_name(stores, NAME, view) == f"{NAME}@3"
        assert find_free_name(stores, NAME, view, "verify") == f"{NAME}.verify@2"


def taken(where: Path) -> None:
    """Let a file lie in a directory."""
    where.mkdir(parents=True)
    (where / "effects.db").touch()
