"""How often lanes commit: a commit is a round trip, and what is not committed is done again."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.model.model_backend import Backend
from helpers.model.model_process import Process
from helpers.model.model_world import PARTITIONS, World
from helpers.redis.servers import RedisServer
from memorybus.errors import ArchiveDamaged
from memorybus_workers.apply.serial import SerialApplier
from memorybus_workers.lanes.lane import COMMIT_EVERY, Lane

EVENTS = 12
"""Three batches."""


class Run:
    """One worker and one lane with a backlog.

    Attributes:
        commits: where the lane stood at each commit that had something new to say.
    """

    def __init__(self, world: World, backend: Backend, kind: str) -> None:
        self.world, self.backend = world, backend
        self.commits: list[int] = []
        self.process = Process("one", world.settings, world.clock, kind, "live").opened(backend)
        self.process.wanted = frozenset(range(PARTITIONS))
        self.process.turn()
        for _ in range(EVENTS):
            world.publish("s0", "ok")
        world.send()

    def turn(self) -> list[int]:
        """Let the worker have a turn; return its commits."""
        self.commits.clear()
        self.world.clock.advance(1.0)
        self.process.turn()
        return list(self.commits)

    @property
    def applied(self) -> int:
        """How many events the backend has."""
        return sum(self.backend.tries.values())


@pytest.fixture(name="run")
def _run(
    redis_server: RedisServer, short_dir: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    world = World(redis_server.url, short_dir)
    run = Run(world, Backend(), kind)
    commit = Lane.commit

    def noted(lane: Lane, sent: int | str = "") -> None:
        if lane.n > max(run.commits, default=0):
            run.commits.append(lane.n)
        commit(lane, sent)

    monkeypatch.setattr(Lane, "commit", noted)
    yield run
    run.process.end()
    world.close()


@pytest.mark.parametrize("kind", ["transactional", "keyed"])
def test_quick_batches_are_committed_together(run):
    """G4: who recognises a repeated event commits a moment's work at once, and all of it."""
    assert run.turn() == [EVENTS]
    assert run.applied == EVENTS


@pytest.mark.parametrize("kind", ["transactional", "keyed"])
def test_what_may_be_uncommitted_is_noted_after_a_death(run):
    """G6: an owner's death may be the deed of any event since its last commit, and no other."""
    for _ in range(100):
        run.world.publish("s0", "ok")
    run.world.send()
    steps = [0, *run.turn(), *run.turn()]
    most = max(after - before for before, after in pairwise(steps))
    lanes = run.process._lanes
    assert lanes is not None
    assert most == lanes.applier.reach() > run.world.settings.batch


@pytest.mark.parametrize("kind", ["lookup", "blind"])
def test_others_commit_each_event(run):
    """G4: one crash leaves one event in doubt, however quick the backend is."""
    assert run.turn() == list(range(1, EVENTS + 1))


@pytest.mark.parametrize("kind", ["transactional", "keyed"])
def test_slow_batches_are_committed_each(run, monkeypatch):
    """G4: what a crash repeats is a moment's work and a batch, not all that a lane has read."""
    before = SerialApplier._before_chunk

    def slowly(self: SerialApplier, lane: Lane, chunk: list[object]) -> None:
        run.world.clock.advance(COMMIT_EVERY)
        before(self, lane, chunk)

    monkeypatch.setattr(SerialApplier, "_before_chunk", slowly)
    assert run.turn() == [4]
    assert run.turn() == [8]


@pytest.mark.parametrize("kind", ["keyed"])
def test_what_was_applied_before_damage_is_committed(run, monkeypatch):
    """G7: a lane that stands still at a damaged segment has its place from before it."""
    read = Lane.read

    def damaged(self: Lane, most: int) -> object:
        if self.window.read_n >= 8:
            raise ArchiveDamaged("a segment")
        return read(self, most)

    monkeypatch.setattr(Lane, "read", damaged)
    assert run.turn() == [8]
    assert run.applied == 8
