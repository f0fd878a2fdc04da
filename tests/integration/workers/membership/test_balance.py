"""What a worker wants while leases come and go in Redis."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from helpers.making import MakeSettings
from memorybus.config.settings import Settings
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from memorybus.registry.roster import WorkerInfo
from memorybus.testing import FakeClock
from memorybus_workers.hosting.served import ServedInstances
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.membership.balance import Balance
from redis import Redis

LANES = 8
SERVED = cast("ServedInstances", SimpleNamespace(infos={"p": SimpleNamespace(placement="shared")}))


def worker(name: str) -> WorkerInfo:
    """Return a worker that is ready to serve the provider."""
    return WorkerInfo(
        id=name, host="h", pid=1, lanes=0, jobs=0, providers=("p",), heartbeat_at=0, ready=("p",)
    )


class Two:
    """Two workers that share the lanes of one provider, seen by the first."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.namespace)
        self.redis: Redis = connect_redis(settings)
        self.clock = FakeClock()
        self.held: set[int] = set()
        leases = SimpleNamespace(holds=lambda name, lane: lane in self.held)
        self.balance = Balance(settings, self.clock, "a", SERVED, cast("Leases", leases))
        for lane in range(LANES):
            self.take(lane, "ab"[lane % 2])

    def take(self, lane: int, name: str) -> None:
        """Give a worker a lane."""
        call = scripts.acquire(self.keys, lane, "p", name, 60_000, 0)
        assert scripts.run(self.redis, call) is not None

    def free(self, lane: int) -> None:
        """Let nobody have a lane, as if it was given up."""
        lease: Any = self.redis.get(self.keys.lease(lane, "p"))
        epoch, _, worker = (lease or b"0:").decode().partition(":")
        scripts.run(
            self.redis, scripts.release(OwnedLane(self.keys, lane, "p", int(epoch), worker))
        )

    def wants(self, *alive: str) -> frozenset[int]:
        """Return what the first worker wants."""
        return self.balance.compute_shares(self.redis, [worker(name) for name in alive], ["p"])["p"]

    def lose_leases(self) -> None:
        """Take all leases away, as a server does whose clock is set forward."""
        self.redis.delete(*(self.keys.lease(lane, "p") for lane in range(LANES)))


@pytest.fixture
def two(make_settings: MakeSettings, redis_url: str) -> Two:
    """Return two workers with leases of ten seconds."""
    return Two(make_settings(url=redis_url, partitions=LANES, lease=10.0))


EVEN, ALL = frozenset(range(0, LANES, 2)), frozenset(range(LANES))


@pytest.mark.parametrize("alive", ["ab", "a"])
def test_leases_that_go_before_their_time_move_nothing(two, alive):
    """G5: who sees no lease, or nobody else, after the server's clock jumped keeps what it has."""
    assert two.wants(*"ab") == EVEN
    two.clock.sleep(1.0)
    two.lose_leases()
    assert two.wants(*alive) == EVEN


def test_what_we_hold_we_keep(two):
    """G5: a lease of ours that was seen long ago, or short before its end, may just be renewed."""
    two.held = {0, 2}
    assert two.wants(*"ab") == EVEN
    two.lose_leases()
    two.clock.sleep(10.1)
    for lane in (1, 3, 4, 5, 6, 7):
        two.take(lane, "b")
    assert two.wants("a", "b", "Z") >= {0, 2}, "given to who comes first in order"


def test_when_their_time_is_over_lanes_are_free(two):
    """G5: by our own clock the dead one's leases have ended: its lanes are ours."""
    assert two.wants(*"ab") == EVEN
    two.lose_leases()
    two.clock.sleep(10.1)
    assert two.wants("a") == ALL


def test_what_was_given_up_is_free_at_once(two):
    """G5: a lane that says that it was given up in good order waits for nobody's clock."""
    assert two.wants(*"ab") == EVEN
    for lane in sorted(ALL - EVEN):
        two.free(lane)
    assert two.wants("a") == ALL


def test_a_lease_of_any_bytes_ends_no_worker(two):
    """G10: what somebody else wrote in a lease's place costs that lane and nothing else."""
    two.redis.set(two.keys.lease(0, "p"), b"\xff\xfe", px=60_000)
    assert two.wants(*"ab") >= EVEN - {0}


def test_what_was_free_while_we_could_not_serve_is_not_deserted(two):
    """G5: a provider that is ready again takes no lane that is another's before that one has."""
    two.free(1)
    assert two.wants(*"ab") == EVEN
    assert two.balance.compute_shares(two.redis, [worker("a"), worker("b")], []) == {}
    two.clock.sleep(10.1)
    assert two.wants(*"ab") == EVEN
    two.clock.sleep(1.0)
    assert two.wants(*"ab") == EVEN | {1}
