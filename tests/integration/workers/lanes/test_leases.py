"""Leases of a worker process: renewal, loss, and what stands in Redis."""

from collections.abc import Iterator

import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.redis.servers import unreachable_client
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import LeaseLost
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.lanes.leases import Lease, Leases


@pytest.fixture(name="leases")
def _leases(settings: Settings) -> Iterator[Leases]:
    leases = Leases(settings, SYSTEM, "w1")
    leases.start()
    yield leases
    leases.stop()


def take(leases: Leases, client: redis.Redis, partition: int = 0) -> Lease:
    """Take a lane that is free."""
    lease = leases.acquire(client, "p", partition, 0)
    assert lease is not None
    return lease


def test_a_lease_outlives_its_time_while_its_owner_lives(leases, redis_client, settings):
    """G5: leases are renewed in time, whatever the lanes do meanwhile."""
    lease = take(leases, redis_client)
    first = lease.until
    wait_until(lambda: lease.until > first + settings.lease, "renewed over its first end")
    leases.check(lease)
    assert redis_client.get(lease.key) == lease.lane.token.encode()
    assert leases.count() == 1


def test_a_lost_lease_is_noticed_and_not_taken_back(leases, redis_client):
    """G5: when another owns the lane, the next renewal marks the lease as lost for good."""
    lease = take(leases, redis_client)
    redis_client.set(lease.key, "2:w2", px=60_000)
    wait_until(lambda: lease.lost, "the loss is noticed")
    with pytest.raises(LeaseLost):
        leases.check(lease)
    assert redis_client.get(lease.key) == b"2:w2"
    assert leases.count() == 0


def test_a_vanished_lease_that_another_had_is_lost(leases, redis_client):
    """G5: a lease that is gone is not made again by a renewal if the lane was another's since."""
    lease = take(leases, redis_client)
    redis_client.hset(lease.lane.key, "epoch", lease.lane.epoch + 1)
    redis_client.delete(lease.key)
    wait_until(lambda: lease.lost, "the loss is noticed")
    assert not redis_client.exists(lease.key)


def test_an_owner_that_cannot_renew_stops_in_time(settings, redis_client):
    """G5: past its time by the owner's own clock a lease counts as lost, without asking Redis."""
    clock = FakeClock()
    leases = Leases(settings, clock, "w1")
    lease = take(leases, redis_client)
    clock.advance(settings.lease - 0.01)
    leases.check(lease)
    clock.advance(0.01)
    with pytest.raises(LeaseLost):
        leases.check(lease)
    redis_client.delete(lease.key)


def test_released_leases_are_free_at_once(leases, redis_client):
    """G5: who gives lanes up leaves them to the next at once; a stale release does nothing."""
    ours = [take(leases, redis_client, partition) for partition in range(3)]
    redis_client.set(ours[2].key, "9:w2", px=60_000)
    leases.release(redis_client, ours)
    assert [redis_client.exists(lease.key) for lease in ours] == [0, 0, 1]
    assert leases.count() == 0


def test_the_epoch_starts_above_what_the_store_has_seen(leases, redis_client, settings):
    """G5: after Redis lost its count, a new owner's epoch is above the provider's own record."""
    lease = leases.acquire(redis_client, "p", 0, 2**51)
    assert lease is not None
    assert lease.lane.epoch == 2**51 + 1
    assert (
        redis_client.hget(Keys(settings.namespace).lane(0, "p"), "epoch") == str(2**51 + 1).encode()
    )


def test_a_lane_with_a_call_under_way_is_kept_from_others(leases, redis_client, settings):
    """G4: a lane that is given up is free once no call of it may land, here it may be at once."""
    lease, other = take(leases, redis_client), take(leases, redis_client, 1)
    activity = ThreadActivity(SYSTEM)
    activity.begin("event", lease.key)
    assert leases.give_up([lease, other], [activity]) == [other]
    assert lease.lost
    assert leases.holds("p", 0)
    renewed = lease.until
    wait_until(lambda: lease.until > renewed, "it is renewed all the same")
    again = take(leases, redis_client)
    assert again.lane.epoch == lease.lane.epoch + 1
    assert redis_client.get(lease.key) == again.lane.token.encode()
    assert leases.give_up([again]) == []
    activity.end()
    wait_until(lambda: not redis_client.exists(lease.key), "it is released")
    assert not leases.holds("p", 0)
    assert redis_client.hget(lease.lane.key, "owner") is None, "in good order"


def test_a_long_call_has_a_lease_as_long_as_it_may_take(settings, redis_client):
    """G5: it is prolonged before the call, kept so by renewals, and as short as any after it."""
    clock = FakeClock()
    leases = Leases(settings, clock, "w1")
    lease = take(leases, redis_client)
    long = 30 * settings.lease
    with leases.extended_for(lease, long):
        leases.check(lease, long)
        clock.advance(settings.lease)
        leases.renew()
        leases.check(lease, long - settings.lease)
        assert redis_client.pttl(lease.key) > 1000 * (long - settings.lease)
    clock.advance(long - settings.lease)
    leases.renew()
    assert 0 < redis_client.pttl(lease.key) <= 1000 * settings.lease
    leases.check(lease)
    redis_client.delete(lease.key)


def test_a_long_call_does_not_begin_without_its_lease(settings, redis_client):
    """G5: whose lease cannot be prolonged, for it is another's or Redis is away, makes no call."""
    leases = Leases(settings, SYSTEM, "w1")
    lost, unreachable = take(leases, redis_client), take(leases, redis_client, 1)
    redis_client.set(lost.key, "2:w2", px=60_000)
    with pytest.raises(LeaseLost), leases.extended_for(lost, 60.0):
        pytest.fail("the call began")
    leases._redis = unreachable_client()
    with pytest.raises(LeaseLost), leases.extended_for(unreachable, 60.0):
        pytest.fail("the call began")
    assert (lost.needed, unreachable.needed) == ([], [])
    redis_client.delete(lost.key, unreachable.key)
