"""Verify: it changes nothing, and what it says is so; copies have states of their own (G8)."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers.processes.processes import Spawn
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.rebuilding import command, damage, fill, ran, result, settled, talking
from helpers.stories.scenario import (
    NAME,
    environ,
    home,
    publish,
    recorded,
    say,
    spread_sessions,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, Instances
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
    publish(settings, "s", "one", "two")
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


BOTH = ("transactional", "keyed")
"""Provider instances of the two classes, on one log."""


def both(spawn: Spawn, settings: Settings, *words: str) -> list[dict[str, Any]]:
    """Run a command for both providers at once; return what each did."""
    children = [command(spawn, settings, *words, name, "--yes") for name in BOTH]
    return [result(child) for child in children]


def of_session(found: list[str], session: str) -> list[str]:
    """Return the texts of a session, in the order in which they were applied."""
    return [text for text in found if text.startswith(f"{session} ")]


@pytest.mark.timeout(120)
def test_two_workers_rebuild_roll_back_and_drop(redis_client, make_settings, spawn):
    """G8: two workers share the lanes of all generations; nothing is missed or doubled at a seam.

    Events of several sessions come all the time, through rebuild, rollback and drop, of a
    transactional and of a keyed provider at once.
    """
    table = {name: {"kind": f"helpers.providers.recording:{name.title()}"} for name in BOTH}
    settings = make_settings(providers=BOTH, provider=table)
    instances = Instances(redis_client, Keys(settings.namespace))
    fill(settings, count=20)
    children = [worker(spawn, settings, jobs=1) for _ in range(2)]
    with ExitStack() as talks:
        names = spread_sessions(settings, 3, "busy")
        said = [talks.enter_context(talking(settings, name, 0.05)) for name in names]
        done = both(spawn, settings, "rebuild")
        assert [(one["live"], one["compared"]["differing"]) for one in done] == [
            (f"{name}@1", 0) for name in BOTH
        ]
        assert set(instances.pauses()) == set(BOTH)
        back = both(spawn, settings, "rebuild", "--rollback")
        assert [one["live"] for one in back] == list(BOTH)
        kept = {name: texts(home(settings, f"{name}@1")) for name in BOTH}
        for place in (home(settings, one) for name in BOTH for one in (name, f"{name}@1")):
            assert all(calls(place, child.pid) for child in children), "one worker served it alone"
        dropped = both(spawn, settings, "rebuild", "--drop")
        assert [one["dropped"] for one in dropped] == [[f"{name}@1"] for name in BOTH]
    publish(settings, "late", "late: after all that")
    for name in BOTH:
        settled(redis_client, settings, name)
        found = texts(home(settings, name))
        for session, words in zip(names, said, strict=True):
            assert of_session(found, session) == words
            then = of_session(kept[name], session)
            assert then == words[: len(then)]
        assert len(found) == 4 * 21 + sum(map(len, said)) + 1
        assert not home(settings, f"{name}@1").exists()
    assert [child.terminate() for child in children] == [0, 0]


@pytest.mark.timeout(180)
def test_the_pause_of_a_swap_is_short(redis_client, make_settings, spawn):
    """G8: with no backlog the lanes of two workers pause for 2 s at most.

    The best of three swaps counts, with half a second more: the machine may be busy otherwise.
    """
    settings = make_settings(**recorded("Transactional"))
    fill(settings, count=20)
    children = [worker(spawn, settings, jobs=1) for _ in range(2)]
    settled(redis_client, settings, NAME)
    rounds = ((NAME,), ("--rollback", NAME), ("--rollback", NAME))
    done = [ran(spawn, settings, "rebuild", *words, "--yes") for words in rounds]
    assert 0 < min(one["paused_ms"] for one in done) <= 2_000 + 1_000 * MARGIN
    assert [child.terminate() for child in children] == [0, 0]


@pytest.mark.timeout(120)
def test_agents_publish_and_recall_in_the_pause(redis_client, make_settings, spawn):
    """G8, G9: while both generations stand still events are accepted and recalls are answered."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, count=5)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    words = ("rebuild", NAME, "--yes")
    swap = spawn("-m", "helpers.processes.stopping", "rebuild.met", *words, env=environ(settings))
    stopped = psutil.Process(swap.pid)
    wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, "both stand still", 30)
    pauses = Instances(redis_client, Keys(settings.namespace)).pauses()
    assert pauses.keys() == {NAME, f"{NAME}@1"}
    with MemoryBus.connect(settings) as bus:
        say(bus, "meanwhile", "in the pause")
        assert bus.flush("logged", 25)
        assert any("a remembers" in one.text for one in bus.recall("a remembers").results)
    assert "in the pause" not in texts(home(settings))
    swap.thaw()
    assert swap.wait(60) == 0, swap.output()
    settled(redis_client, settings, f"{NAME}@1")
    assert "in the pause" in texts(home(settings, f"{NAME}@1"))
    assert child.terminate() == 0
