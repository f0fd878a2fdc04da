"""Which worker has which lanes, who is alive, and how fast it works."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.registry.roster import WorkerInfo
from memorybus.testing import FakeClock
from memorybus_workers.membership.assignment import assign, assign_to_one, quotas, wanted_lanes
from memorybus_workers.membership.presence import Heartbeats, Rates

LANES = 16
WORKERS = st.dictionaries(
    st.sampled_from([f"w{n}" for n in range(12)]), st.floats(0.1, 10), min_size=1
)
OWNERS = st.lists(
    st.sampled_from([None, *(f"w{n}" for n in range(12)), "dead"]), min_size=LANES, max_size=LANES
).map(lambda owners: dict(enumerate(owners)))


def nobody() -> dict[int, str | None]:
    """Return lanes without owners."""
    return dict.fromkeys(range(LANES))


def settled(weights: dict[str, float]) -> dict[int, str | None]:
    """Return lanes owned as assigned."""
    return dict(assign(nobody(), weights))


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ({"a": 1.0}, {"a": 16}),
        ({"a": 1.0, "b": 1.0}, {"a": 8, "b": 8}),
        ({"a": 1.0, "b": 3.0}, {"a": 4, "b": 12}),
        ({f"w{n}": 1.0 for n in range(4)}, {f"w{n}": 4 for n in range(4)}),
        ({"a": 1.0, "b": 0.001}, {"a": 16}),
    ],
)
def test_shares_follow_the_capacities(weights, shares):
    """Each worker gets its weight's share of the lanes."""
    assert Counter(assign(nobody(), weights).values()) == shares


@given(WORKERS, OWNERS)
def test_every_lane_has_one_live_worker(weights, owners):
    """G5: an assignment gives every lane to exactly one live worker, by shares to within one."""
    assigned = assign(owners, weights)
    assert assigned.keys() == owners.keys()
    assert set(assigned.values()) <= weights.keys()
    total = sum(weights.values())
    for worker, weight in weights.items():
        exact = LANES * weight / total
        owned = sum(one == worker for one in assigned.values())
        assert exact - 1 <= owned <= exact + 1


@given(WORKERS, OWNERS)
def test_no_more_moves_than_the_shares_ask(weights, owners):
    """A lane moves only if its owner has gone or holds more than its share."""
    owned = Counter(owner for owner in owners.values() if owner in weights)
    shares = quotas(LANES, weights, owned, "")
    assigned = assign(owners, weights)
    for worker in weights:
        kept = sum(assigned[p] == worker for p, owner in owners.items() if owner == worker)
        assert kept == min(owned[worker], shares[worker])


@pytest.mark.parametrize("count", range(1, 12))
def test_a_newcomer_takes_its_share_and_nothing_else_moves(count):
    """When a worker joins, only its share moves; when it leaves, only what it had."""
    before = settled({f"w{n}": 1.0 for n in range(count)})
    more = {f"w{n}": 1.0 for n in range(count + 1)}
    after = assign(before, more)
    moved = {p for p in before if before[p] != after[p]}
    assert {after[p] for p in moved} <= {f"w{count}"}
    assert len(moved) <= -(-LANES // (count + 1))
    left = assign(dict(after), {f"w{n}": 1.0 for n in range(count)})
    assert {p for p in after if after[p] != left[p]} == {
        p for p in after if after[p] == f"w{count}"
    }


@given(WORKERS, OWNERS)
def test_an_assignment_is_at_rest(weights, owners):
    """Once lanes are owned as assigned, nothing moves any more."""
    assigned = assign(owners, weights)
    assert assign(dict(assigned), weights) == assigned


@given(WORKERS, OWNERS)
def test_a_local_store_has_one_writer(weights, owners):
    """All lanes of a store that takes one writer go to the worker that holds most of them."""
    assigned = assign_to_one(owners, weights)
    (worker,) = set(assigned.values())
    owned = Counter(owner for owner in owners.values() if owner in weights)
    assert owned[worker] == max(owned.values(), default=0)
    assert assign_to_one(dict(assigned), weights) == assigned


def test_remainders_of_several_providers_lie_apart():
    """The odd lanes of many providers are not all on one worker."""
    weights = {"a": 1.0, "b": 1.0, "c": 1.0}
    extra = {
        Counter(assign(nobody(), weights, f"provider {n}").values()).most_common(1)[0][0]
        for n in range(20)
    }
    assert extra == {"a", "b", "c"}


def test_nobody_is_assigned_what_nobody_can_serve():
    """Without a live worker there is no assignment, and an owner keeps what it has."""
    assert assign(nobody(), {}) == assign_to_one(nobody(), {}) == {}
    owners: dict[int, str | None] = {0: "me", 1: "other", 2: None}
    assert wanted_lanes("me", {}, owners, set(), set()) == {0}


def test_a_deserted_lane_is_taken_by_whoever_sees_it():
    """Serving comes before balance: a lane that was free for too long is wanted by everybody."""
    owners: dict[int, str | None] = {0: "me", 1: None}
    assert wanted_lanes("me", {0: "me", 1: "other"}, owners, {1}, set()) == {0, 1}
    assert wanted_lanes("me", {0: "other", 1: "other"}, owners, set(), set()) == set()


def test_a_lane_whose_lease_still_runs_is_left_to_its_owner():
    """G5: a lane is not wanted before its owner's lease has run out, whatever is assigned."""
    owners: dict[int, str | None] = {0: "other", 1: None}
    assert wanted_lanes("me", {0: "me", 1: "me"}, owners, {1}, {0, 1}) == set()


NOW = 1_700_000_000_000
HOUR = 3_600_000
SILENCE = 2.5


class Heard:
    """What one worker hears."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pulses = Heartbeats(self.clock, 1.0)

    def silent(self, now_ms: int, **beats: int) -> set[str]:
        """Hear heartbeats; return those that are silent."""
        workers = [WorkerInfo(name, "h", 1, 0, 0, (), at) for name, at in beats.items()]
        self.pulses.note(workers, now_ms)
        return {one.id for one in self.pulses.silent(workers, SILENCE)}


def test_an_old_heartbeat_is_silent_at_first_sight():
    """A worker that died before we came gets no lanes; nor does one of a time that is not yet."""
    heard = Heard()
    assert heard.silent(NOW, fresh=NOW - 900, dead=NOW - 2_600, odd=NOW + HOUR) == {"dead", "odd"}


def test_the_servers_clock_may_jump():
    """G5: a jump by an hour, forth or back, kills nobody who beats on."""
    for jump in (HOUR, -HOUR):
        heard = Heard()
        assert heard.silent(NOW, a=NOW, b=NOW - 500) == set()
        heard.clock.advance(1.0)
        assert heard.silent(NOW + jump, a=NOW + jump, b=NOW - 500) == set()
        heard.clock.advance(1.0)
        assert heard.silent(NOW + jump + 1_000, a=NOW + jump + 1_000, b=NOW + jump) == set()


def test_who_stops_to_beat_is_silent_in_time():
    """G5: a dead worker's heartbeat stays as it is; its silence is counted by our own clock."""
    heard = Heard()
    assert heard.silent(NOW, a=NOW - 500) == set()
    heard.clock.advance(1.9)
    assert heard.silent(NOW + 1_900, a=NOW - 500) == set()
    heard.clock.advance(0.2)
    assert heard.silent(NOW + 2_100, a=NOW - 500) == {"a"}
    assert heard.silent(NOW + 2_100, a=NOW + 2_000) == set()


def test_a_rate_is_the_growth_of_the_last_seconds():
    """G10: what was fast a minute ago counts no more; what is new has grown from nothing."""
    rates = Rates()
    assert rates.note(0, {"a": 0}) == {}
    assert rates.note(1, {"a": 100}) == {"a": 100}
    for second in range(2, 12):
        rates.note(second, {"a": 100})
    assert rates.note(12, {"a": 100, "b": 50}) == {"a": 0, "b": 5}


def test_a_clock_that_stands_gives_no_rate():
    """G10: two looks at one moment divide by nothing."""
    rates = Rates()
    rates.note(5, {"a": 1})
    assert rates.note(5, {"a": 2}) == {}
