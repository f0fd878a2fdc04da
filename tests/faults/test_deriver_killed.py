"""Workers that derive are killed, doubled, and lose their Redis: each conclusion is there once."""

import shutil

import pytest
from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer
from helpers.stories.deriving import (
    DERIVING,
    KINDS,
    conclusions,
    derives,
    kept_kinds,
    talk,
    tell_and_stop,
    worker_dying_at,
)
from helpers.stories.world import World

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

POINTS = ("derive.concluded", "derive.published", "derive.logged", "derive.settled")
SESSIONS = ("one", "two", "three")


def ids(world: World) -> set[str]:
    """Return the ids of the conclusions in the log."""
    return {event["id"] for event in conclusions(world)}


def assert_once(world: World, sessions: int) -> None:
    """Every session has one summary and topics, and the log has no conclusion twice."""
    world.wait_applied()
    events = conclusions(world)
    assert len({event["id"] for event in events}) == len(events)
    kept = kept_kinds(world)
    assert {kind: kept[kind] for kind in ("summary", "topic")} == dict.fromkeys(
        ("summary", "topic"), sessions
    )
    assert sum(kept.values()) == len(events)


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_a_point_is_followed(make_world, point):
    """G1, G4: wherever the worker dies, the next one concludes what is missing, nothing twice."""
    world = make_world(**DERIVING)
    tell_and_stop(world, *SESSIONS)
    assert worker_dying_at(world, point).wait() == -9
    wait_until(lambda: not derives(world), "the turn of the dead worker has expired")
    world.worker()
    wait_until(lambda: kept_kinds(world).get("summary") == 3, "all sessions are concluded", 60)
    wait_until(lambda: not derives(world), "the round has ended")
    assert_once(world, 3)


def test_two_workers_conclude_each_session_once(make_world):
    """G2: workers that start together lead to the conclusions of one."""
    world = make_world(**DERIVING)
    tell_and_stop(world, *SESSIONS)
    for _ in range(2):
        world.worker()
    wait_until(lambda: kept_kinds(world).get("summary") == 3, "all sessions are concluded", 60)
    wait_until(lambda: not derives(world), "the round has ended")
    assert_once(world, 3)


def test_conclusions_that_redis_lost_come_again(make_world, tmp_path):
    """G1, G4: an older copy of Redis gets the lost conclusions again, under the same ids."""
    server = RedisServer(appendonly="yes", appendfsync="always")
    server.start()
    try:
        shared = make_world(url=server.url, **DERIVING, spool_keep=600.0)
        world = World(shared.settings, server.client(), shared.spawn)
        tell_and_stop(world, "chat")
        copy = tmp_path / "copy"
        shutil.copytree(server.directory, copy, ignore=shutil.ignore_patterns("s", "log"))
        world.worker()
        wait_until(lambda: kept_kinds(world) == KINDS, "all conclusions are kept")
        before = ids(world)
        server.kill()
        shutil.rmtree(server.directory / "appendonlydir")
        shutil.copytree(copy, server.directory, dirs_exist_ok=True)
        server.start()
        assert conclusions(world) == []
        with world.bus() as bus:
            talk(bus, "later")
        wait_until(lambda: ids(world) > before, "the log has those of both sessions", 90)
        assert_once(world, 2)
    finally:
        server.remove()
