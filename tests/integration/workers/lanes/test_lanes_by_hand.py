"""Two owners of one lane, step by step: what the second may take from the first's checkpoint."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.model.model_backend import KINDS, Backend
from helpers.model.model_checks import Checks
from helpers.model.model_process import Process
from helpers.model.model_world import LEASE, PARTITIONS, World
from helpers.redis.servers import RedisServer

NewProcess = Callable[[str], Process]
every_kind = pytest.mark.parametrize("kind", sorted(KINDS))


@pytest.fixture(name="world")
def _world(redis_server: RedisServer, short_dir: Path) -> Iterator[World]:
    world = World(redis_server.url, short_dir)
    yield world
    world.close()


@pytest.fixture(name="backend")
def _backend() -> Backend:
    return Backend()


@pytest.fixture(name="new_process")
def _new_process(world: World, backend: Backend, kind: str) -> Iterator[NewProcess]:
    made: list[Process] = []

    def make(name: str) -> Process:
        process = Process(name, world.settings, world.clock, kind, "live").opened(backend)
        process.wanted = frozenset(range(PARTITIONS))
        made.append(process)
        return process

    yield make
    for process in made:
        process.end()


def go_round(world: World, process: Process, times: int) -> None:
    """Let a process turn, and make its calls."""
    for _ in range(times):
        world.pass_time(1.0)
        process.turn()
        while process.in_flight:
            process.call(0)


@every_kind
def test_what_is_done_above_the_checkpoint_is_not_called_again(world, backend, new_process, kind):
    """G4: a key fails, others go on, their owner dies: the next one calls only the failing one."""
    for root, fate in (("s0", "transient:9"), ("s1", "ok"), ("s2", "ok"), ("s1", "ok")):
        world.publish(root, fate)
    world.send()
    first, second = new_process("first"), new_process("second")
    go_round(world, first, 3)
    ids = {one.id for root in ("s1", "s2") for one in world.said[root]}
    assert {event_id: backend.tries[event_id] for event_id in ids} == dict.fromkeys(ids, 1)
    first.kill()
    world.pass_time(LEASE + 1)
    go_round(world, second, 3)
    assert {event_id: backend.tries[event_id] for event_id in ids} == dict.fromkeys(ids, 1)
    assert backend.tries[world.said["s0"][0].id] > 1


@pytest.mark.parametrize("kind", ["lookup", "lookup, side by side"])
def test_what_a_dead_owner_handed_over_stays_in_doubt(world, backend, new_process, kind):
    """G4: an heir that has read less than the dead has sent does not make less of it known."""
    checks = Checks(world, backend, "live", kind)
    world.publish("s0", "transient:9")
    for number in range(14):
        world.publish(("s1", "s2", "s4", "s5")[number % 4], "ok")
    world.send()
    first, second = new_process("first"), new_process("second")
    go_round(world, first, 4)
    before = [int(checks.lane(partition).get(b"sent", 0)) for partition in range(PARTITIONS)]
    assert max(before) > world.settings.batch
    first.kill()
    world.pass_time(LEASE + 1)
    second.turn(("lane.before_apply", 1))
    after = [int(checks.lane(partition).get(b"sent", 0)) for partition in range(PARTITIONS)]
    assert all(now >= then for now, then in zip(after, before, strict=True)), (before, after)


@pytest.mark.parametrize("kind", ["lookup", "lookup, side by side"])
def test_a_lane_lost_with_the_tail_leaves_the_log_in_doubt(world, backend, new_process, kind):
    """G4: Redis comes back with the events and without the lane: the backend is asked for each."""
    for number in range(14):
        world.publish(("s1", "s2", "s4", "s5")[number % 4], "ok")
    world.send()
    world.sync()
    first, second = new_process("first"), new_process("second")
    go_round(world, first, 4)
    assert len(backend.effects) > PARTITIONS  # the lowest of each lane is in doubt anyway
    world.lose_tail(told=True)
    go_round(world, second, 8)
    assert len(backend.effects) == 14
    Checks(world, backend, "live", kind).now(0)


@every_kind
@pytest.mark.parametrize("point", ["lane.after_read", "lane.before_apply", "lane.after_apply"])
def test_an_owner_that_dies_between_read_and_commit_loses_nothing(
    world, backend, new_process, kind, point
):
    """G3, G5: wherever it stands still, the next owner completes its work; it writes nothing."""
    checks = Checks(world, backend, "live", kind)
    for root in ("s0", "s1", "s0", "s2", "s1"):
        world.publish(root, "ok")
    world.send()
    first, second = new_process("first"), new_process("second")
    first.turn((point, 1))
    checks.now(0)
    world.pass_time(LEASE + 1)
    go_round(world, second, 4)
    checks.now(1)
    checks.complete()
    if first.paused_at:
        before = checks.written(0)
        first.resume()
        assert checks.written(0) == before


@every_kind
def test_a_checkpoint_whose_entry_was_lost_steps_back(world, backend, new_process, kind):
    """G1, G3: a commit that came after the server lost the entry it names stops no lane."""
    checks = Checks(world, backend, "live", kind)
    lane = world.keys.lane(0, "live")
    first, second = new_process("first"), new_process("second")
    world.publish("s0", "ok")
    world.send()
    go_round(world, first, 2)
    world.sync()
    world.publish("s0", "ok")
    world.send()
    go_round(world, first, 2)
    late = dict(zip(("entry", "n"), world.redis.hmget(lane, "entry", "n"), strict=True))
    first.kill()
    world.lose_tail(told=True)
    world.redis.hset(lane, mapping=late)
    world.publish("s1", "ok")
    world.publish("s0", "ok")
    world.send()
    world.pass_time(LEASE + 1)
    go_round(world, second, 5)
    assert checks.is_done()
    checks.complete()
