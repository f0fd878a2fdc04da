"""Real workers derive what is due: by themselves, once, and one worker at a time."""

from helpers.processes.waiting import wait_until
from helpers.stories.deriving import (
    DERIVING,
    KINDS,
    conclusions,
    derives,
    kept_kinds,
    talk,
    tell_and_stop,
)


def test_a_session_that_ends_is_derived_by_a_worker(make_world):
    """G8: its summary, topics and the person's profile are events in the log, and are kept."""
    world = make_world(**DERIVING)
    tell_and_stop(world, "chat")
    assert conclusions(world) == []
    world.worker()
    wait_until(lambda: kept_kinds(world) == KINDS, "all conclusions are kept")
    events = conclusions(world)
    assert {event["key"] for event in events} == {"store:ada:user"}
    assert {event["session"]["id"] for event in events} == {"chat"}


def test_a_rebuild_repeats_conclusions_and_derives_nothing(make_world):
    """G8: a rebuilt store has the same conclusions from the log, and nothing is derived again."""
    world = make_world(**DERIVING)
    tell_and_stop(world, "chat")
    child = world.worker()
    wait_until(lambda: kept_kinds(world) == KINDS, "all conclusions are kept")
    world.wait_applied()
    assert world.run("rebuild", "holographic", "--yes").returncode == 0
    child.terminate()
    world.worker()
    wait_until(lambda: not derives(world), "the next worker has looked")
    assert len(conclusions(world)) == sum(KINDS.values())
    assert world.run("verify", "holographic").returncode == 0


def test_without_derivers_nothing_is_derived(make_world):
    """If the setting `derivers` is empty, no session becomes due."""
    world = make_world(**DERIVING | {"derivers": ()})
    world.worker()
    with world.bus() as bus:
        talk(bus, "chat")
    world.wait_applied()
    store = world.settings.provider_home("holographic") / "holographic.db"
    assert store.exists()
    assert kept_kinds(world) == {}
    assert not derives(world)
