"""A command that was frozen, and whose lock went on to another, changes nothing when it wakes (G8).

Most freeze by a hook: at a crash point the lock's entries go, as if its time were over, and others
work; then the first one goes on. The log is empty, so nobody has to serve anything.
"""

import json
import socket
from collections.abc import Callable
from functools import partial

import psutil
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.stories.rebuilding import (
    AFTER,
    NEXT,
    drop,
    entries,
    fill,
    frozen,
    live,
    paused_names,
    ran,
    serves,
    settled,
    swap,
    times_out,
    working,
)
from helpers.stories.scenario import NAME, environ, home, recorded, worker
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, InstancePause, Instances, Live, command_pause
from memorybus.registry.rebuild_lock import RebuildLock, RebuildRuns, running_rebuilds
from memorybus.testing import FakeClock
from memorybus_console.operations.copies.copies import mark_dropped
from memorybus_console.operations.rebuild import rebuild
from memorybus_console.operations.rebuild.rebuild import plan_drop
from memorybus_console.operations.stores import Stores


@pytest.fixture(name="settings")
def _settings(redis_client: redis.Redis, make_settings: MakeSettings) -> Settings:
    return make_settings(**recorded("Transactional"))


def test_who_lost_its_lock_does_not_swap_to_what_was_dropped(redis_client, settings):
    """G8: a rebuild frozen before its swap does not let serve what another command dropped."""
    with pytest.raises(RebuildRuns, match="run the same command again"):
        swap(settings, NEXT, "rebuild", frozen(settings, partial(drop, settings)))
    assert live(redis_client, settings) == NAME
    with Stores(settings) as stores:
        assert stores.instances.all()[NEXT].dropped


def test_who_lost_its_lock_does_not_roll_back(settings):
    """G8: a frozen rollback changes nothing, also when the same one serves again as it saw."""

    def meanwhile() -> None:
        serves(settings, AFTER)
        serves(settings, NEXT)

    serves(settings, NEXT)
    with pytest.raises(RebuildRuns):
        swap(settings, NAME, "rollback", frozen(settings, meanwhile))
    with Stores(settings) as stores:
        known = stores.instances.live()[NAME]
    assert (known.instance, known.previous) == (NEXT, AFTER)


def test_who_lost_its_lock_lets_nothing_go(redis_client, settings):
    """G8: a woken command does not let go what the same command, begun again, holds."""
    later: list[InstancePause] = []

    def meanwhile() -> None:
        with working(settings, "rebuild") as other:
            why = command_pause("rebuild", NAME, NEXT, "ben", 2)
            other.stores.instances.set_pause(NAME, why)
            later.append(why)

    with pytest.raises(RebuildRuns):
        swap(settings, NEXT, "rebuild", frozen(settings, meanwhile))
    with Stores(settings) as stores:
        assert stores.instances.pauses()[NAME] == later[0]


def test_who_lost_its_lock_does_not_drop_what_serves(settings, monkeypatch):
    """G8: a drop that was frozen before it marks a generation does not mark one that serves now."""

    def late(stores: Stores, name: str) -> None:
        times_out(settings)
        serves(settings, NEXT)
        mark_dropped(stores, name)

    monkeypatch.setattr(rebuild, "mark_dropped", late)
    with Stores(settings) as stores:
        stores.add_instance(Instance(name=NEXT, provider=NAME, purpose="rebuild"))
        with pytest.raises(RebuildRuns):
            drop(settings)
        assert stores.instances.live()[NAME].instance == NEXT
        assert not stores.instances.all()[NEXT].dropped


def test_a_drop_leaves_what_was_rolled_back_to(settings):
    """G8: a drop that saw another one serve deletes no state of the one that serves now."""
    serves(settings, NEXT)
    home(settings).mkdir(parents=True)
    with Stores(settings) as stores:
        stores.lanes.note_new_lanes(NAME)
        what = plan_drop(stores, NAME)
    assert what.dropped == (NAME,)
    with working(settings, "drop") as late:
        times_out(settings)
        serves(settings, NAME)
        with pytest.raises(MemoryBusError, match="run the same command again"):
            rebuild.drop_generations(late, what, "ann", FakeClock())
        assert home(settings).exists()
        assert late.stores.lanes.count_remaining(NAME) > 0
        assert late.stores.instances.live()[NAME].previous == NEXT


WRITES: dict[str, Callable[[Instances], object]] = {
    "add": lambda one: one.add(Instance(name=AFTER, provider=NAME)),
    "change": lambda one: one.change(
        Instance(name=NEXT, provider=NAME), Instance(name=NEXT, provider=NAME, dropped=True)
    ),
    "remove": lambda one: one.remove(NEXT),
    "swap": lambda one: one.swap(NAME, Live(NAME), Live(NEXT)),
    "set_pause": lambda one: one.set_pause(NAME, InstancePause("late")),
    "resume": lambda one: one.resume(NEXT),
    "change_pause": lambda one: one.change_pause(NEXT, lambda known: None),
    "pause": lambda one: one.pause(NAME, InstancePause("late")),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("replaced", [True, False])
def test_no_write_without_the_lock(name, replaced, redis_client, make_settings):
    """G8: whatever a command changes of instances needs its lock in that very step."""
    keys = Keys(make_settings().namespace)
    plain = Instances(redis_client, keys)
    plain.add(Instance(name=NEXT, provider=NAME))
    plain.swap(NAME, None, Live(NAME))
    plain.set_pause(NEXT, InstancePause("early"))
    before = plain.read_view()
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann") as lock:
        for key in entries(keys):
            redis_client.delete(key)
        fenced = Instances(redis_client, keys, lock)
        if replaced:
            with RebuildLock(redis_client, keys, NAME, "rebuild", "ben"):
                refused(fenced, name)
        else:
            refused(fenced, name)
    assert plain.read_view() == before
    with RebuildLock(redis_client, keys, NAME, "rebuild", "cy") as lock:
        WRITES[name](Instances(redis_client, keys, lock))
    assert plain.read_view() != before


def refused(fenced: Instances, name: str) -> None:
    """Fail unless a write is refused, with what to do."""
    with pytest.raises(RebuildRuns, match=r"without further changes.* See: memorybus rebuild ls"):
        WRITES[name](fenced)


@pytest.mark.parametrize("gone", range(4))
def test_who_was_silent_too_long_ends(gone, redis_client, make_settings):
    """G8: a command of whose lock an entry expired, or is another's now, is told so and ends."""
    keys = Keys(make_settings().namespace)
    entry = entries(keys)[gone]
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann") as lock:
        lock.keep()
        redis_client.delete(entry)
        with pytest.raises(RebuildRuns, match="run the same command again"):
            lock.keep()
        redis_client.set(entry, b"another's", ex=9)
        with pytest.raises(RebuildRuns, match="run the same command again"):
            lock.keep()
    assert redis_client.exists(*entries(keys)) == 1, "it gives up its own, and nothing else"


@pytest.mark.parametrize("pid", [0, -1, 1 << 70])
def test_an_entry_that_names_no_process_holds_nothing_up(redis_client, make_settings, pid):
    """G8: an entry of this host without the id of a process is nobody's: another command begins."""
    keys = Keys(make_settings().namespace)
    names = {"id": "x", "what": "rebuild", "by": "ann", "host": socket.gethostname()}
    redis_client.set(keys.rebuilding(NAME), json.dumps(names | {"pid": pid}), ex=60)
    assert running_rebuilds(redis_client, keys, [NAME]) == {}
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ben") as lock:
        lock.keep()


def test_nobody_has_half_of_a_lock(redis_client, make_settings):
    """G8: who finds one entry taken takes none; a later one finds all of them free."""
    keys = Keys(make_settings().namespace)
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann") as lock:
        redis_client.delete(keys.rebuilding(NAME))
        other = RebuildLock(redis_client, keys, NAME, "drop", "ben")
        with pytest.raises(RebuildRuns, match="a rebuild of rec runs already"):
            other.__enter__()
        assert not redis_client.exists(keys.rebuilding(NAME))
        assert redis_client.get(entries(keys)[-1]) == lock.token
    with other:
        other.keep()
    assert not redis_client.exists(*entries(keys))


def test_fences_fall_before_others_see_nobody_at_work(redis_client, make_settings):
    """G8: workers end the pauses of a silent command only after it can change nothing any more."""
    keys = Keys(make_settings().namespace)
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann") as lock:
        for _ in range(2):
            sign, *fences = [redis_client.pttl(key) for key in entries(keys)]
            assert all(0 < fence < sign - 5_000 for fence in fences)
            lock.keep()


@pytest.mark.timeout(120)
def test_a_process_that_was_stopped_before_its_swap(redis_client, make_settings, spawn):
    """G8: a rebuild stopped (SIGSTOP) just before its swap, woken after another's drop, says so."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    words = ("rebuild", NAME, "--no-verify", "--yes")
    late = spawn("-m", "helpers.processes.stopping", "rebuild.met", *words, env=environ(settings))
    stopped = psutil.Process(late.pid)
    wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, "it stands before its swap", 30)
    assert "runs already" in ran(spawn, settings, "rebuild", "--drop", NAME, "--yes", code=1)
    times_out(settings)
    dropped = ran(spawn, settings, "rebuild", "--drop", NAME, "--yes")
    assert dropped["dropped"] == [NEXT]
    late.thaw()
    assert late.wait(30) == 1, late.output()
    assert "run the same command again" in " ".join(late.output().split())
    assert live(redis_client, settings) == NAME
    wait_until(lambda: not paused_names(redis_client, settings), "a worker ends the pause")
    assert ran(spawn, settings, *words)["live"] == AFTER
    assert child.terminate() == 0
