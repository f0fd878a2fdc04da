"""The Lua scripts on a real server: what they write, what they refuse, what they leave alone."""

from typing import Any

import pytest
import redis
from helpers.processes.waiting import wait_until
from memorybus.errors import LeaseLost
from memorybus.outbox.producers import read_taken_sequences
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Appended, OutgoingEvent, OwnedLane, TailLost
from redis.exceptions import ResponseError

HOUR = 3_600_000


@pytest.fixture(name="keys")
def _keys(namespace: str) -> Keys:
    return Keys(namespace)


def event(
    sequence: int, name: str = "", body: bytes = b"body", digest: bytes = b"d"
) -> OutgoingEvent:
    """Return an event of a producer."""
    return OutgoingEvent(sequence, (name or f"id{sequence}").encode(), digest, body)


def append(
    client: redis.Redis,
    keys: Keys,
    events: list[OutgoingEvent],
    *,
    expected: int = 0,
    producer: str = "p",
    window_ms: int = HOUR,
    max_ids: int = 1_000,
) -> Appended | TailLost:
    """Append to the first partition."""
    call = scripts.append(keys, 0, producer, expected, events, window_ms=window_ms, max_ids=max_ids)
    return scripts.run(client, call)


def numbers(client: redis.Redis, keys: Keys) -> list[int]:
    """Return the dense numbers in the first partition."""
    entries: Any = client.xrange(keys.log(0))
    return [int(fields[b"n"]) for _, fields in entries]


def last_taken(client: redis.Redis, keys: Keys) -> int:
    """Return what the first partition knows of the producer `append` stands for."""
    return read_taken_sequences(client, keys, 1, "p")[0]


def written(client: redis.Redis, call: scripts.ScriptCall[None]) -> bool:
    """Run what only the lane's owner may; return whether it was written."""
    try:
        scripts.run(client, call)
    except LeaseLost as lost:
        return not lost.fenced
    return True


def commit(
    client: redis.Redis, keys: Keys, epoch: int, n: int = 1, entry: str = "1-1", name: str = "a"
) -> bool:
    """Commit; return whether the checkpoint was advanced."""
    at = scripts.Checkpoint(entry, n)
    call = scripts.commit(OwnedLane(keys, 0, name, epoch), at)
    return written(client, call)


def acquire(client: redis.Redis, keys: Keys, worker: str, ms: int = 60_000) -> Any:
    """Take a lane; None if it is taken."""
    return scripts.run(client, scripts.acquire(keys, 0, "a", worker, ms))


def renew(client: redis.Redis, keys: Keys, epoch: int, worker: str) -> int:
    """Prolong a lease by a minute; return what the script says."""
    lane = OwnedLane(keys, 0, "a", epoch, worker)
    (kept,) = scripts.run(client, scripts.renew([(lane, 60_000)]))
    return int(kept)


def release(client: redis.Redis, keys: Keys, epoch: int, worker: str) -> bool:
    """Give a lane up; return whether it is free."""
    scripts.run(client, scripts.release(OwnedLane(keys, 0, "a", epoch, worker)))
    return not client.exists(keys.lease(0, "a"))


def note_tries(
    client: redis.Redis, keys: Keys, epoch: int, tries: bytes, suspects: bytes = b""
) -> bool:
    """Note what the provider is called for; return whether that was written."""
    call = scripts.note_tries(OwnedLane(keys, 0, "a", epoch), tries, suspects)
    return written(client, call)


def park(client: redis.Redis, keys: Keys, epoch: int, *records: tuple[str, str]) -> int | None:
    """Put events aside; return how many wait now, None if nothing was written."""
    given = [(entry, key, b"{}") for entry, key in records]
    call = scripts.park(OwnedLane(keys, 0, "a", epoch), given)
    return client.xlen(keys.dead(0, "a")) if written(client, call) else None


# -- append ---------------------------------------------------------------------------------------


def test_append_numbers_densely(redis_client, keys):
    """G2: entries are numbered from 1 without gaps, over batches and producers."""
    assert append(redis_client, keys, [event(1), event(2)]) == Appended([])
    assert append(redis_client, keys, [event(5)], expected=2) == Appended([])
    assert append(redis_client, keys, [event(1, "x")], producer="q") == Appended([])
    assert numbers(redis_client, keys) == [1, 2, 3, 4]


def test_append_skips_a_resend(redis_client, keys):
    """G2: a batch whose acknowledgement was lost adds only what is new of it."""
    append(redis_client, keys, [event(1), event(2)])
    assert append(redis_client, keys, [event(1), event(2), event(3)]) == Appended([])
    assert numbers(redis_client, keys) == [1, 2, 3]
    assert redis_client.hget(keys.state(0), "duplicates") is None


def test_append_takes_an_id_once_across_producers(redis_client, keys):
    """G2: the same event from another producer, or twice in a batch, is a counted duplicate."""
    append(redis_client, keys, [event(1, "same")])
    again = append(redis_client, keys, [event(1, "same"), event(2, "same")], producer="q")
    twice = append(redis_client, keys, [event(3, "t"), event(4, "t")], producer="r")
    assert again == twice == Appended([])
    assert redis_client.hget(keys.state(0), "duplicates") == b"3"
    assert numbers(redis_client, keys) == [1, 2]


def test_append_counts_and_names_conflicts(redis_client, keys):
    """G2: the same id with another payload is skipped, counted and told, never silent."""
    append(redis_client, keys, [event(1, "same", digest=b"one")])
    told = append(redis_client, keys, [event(2), event(3, "same", digest=b"two")], expected=1)
    assert told == Appended([1])
    assert numbers(redis_client, keys) == [1, 2]
    assert redis_client.hget(keys.state(0), "conflicts") == b"1"


def test_window_of_ids_rotates_by_count(redis_client, keys):
    """G10: a partition remembers between one and two windows of ids, not more."""
    for sequence in range(1, 10):
        append(redis_client, keys, [event(sequence)], expected=sequence - 1, max_ids=3)
    new, old = keys.seen(0)
    assert (redis_client.hlen(new), redis_client.hlen(old)) == (3, 3)
    append(redis_client, keys, [event(1, "id7"), event(2, "id4")], producer="q", max_ids=3)
    assert redis_client.hget(keys.state(0), "duplicates") == b"1", "one window back is remembered"
    assert numbers(redis_client, keys)[9:] == [10], "two windows back are not"


def test_window_of_ids_rotates_by_age(redis_client, keys):
    """G2: an id is known for at least one window, and forgotten after two."""
    append(redis_client, keys, [event(1)])
    for sequence in (2, 3):
        redis_client.hset(keys.state(0), "since", 1)  # the window began in 1970
        append(redis_client, keys, [event(sequence)], expected=sequence - 1)
    new, old = keys.seen(0)
    assert (redis_client.hkeys(new), redis_client.hkeys(old)) == ([b"id3"], [b"id2"])


def test_append_tells_that_redis_lost_its_tail(redis_client, keys):
    """G1: with less than the producer was told, nothing is written and the last one is told."""
    append(redis_client, keys, [event(1), event(2)])
    assert append(redis_client, keys, [event(9)], expected=8) == TailLost(2)
    assert numbers(redis_client, keys) == [1, 2]
    assert last_taken(redis_client, keys) == 2


@pytest.mark.parametrize("which", ["log", "state", "producers", "seen_new", "seen_old"])
def test_append_refuses_a_foreign_type(redis_client, keys, which):
    """G6: somebody else's value at one of our keys is refused, and nothing else is written."""
    new, old = keys.seen(0)
    foreign = {
        "log": keys.log(0),
        "state": keys.state(0),
        "producers": keys.producers(0),
        "seen_new": new,
        "seen_old": old,
    }[which]
    redis_client.hset(keys.state(0), "since", 1 << 42) if which != "state" else None
    redis_client.set(foreign, "theirs")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        append(redis_client, keys, [event(1)])
    assert redis_client.get(foreign) == b"theirs"
    assert which == "log" or redis_client.xlen(keys.log(0)) == 0
    assert which == "producers" or redis_client.hget(keys.producers(0), "p") is None
    redis_client.delete(foreign)


def test_append_out_of_memory_leaves_nothing_half_written(make_redis, keys):
    """G1: a full server refuses a batch whole; what it took before is numbered without a gap."""
    server = make_redis(maxmemory="3mb")
    client = server.client()
    sequence, refused = 0, False
    while not refused:
        batch = [event(sequence + i, body=b"x" * 9_000) for i in range(1, 21)]
        try:
            append(client, keys, batch, expected=sequence)
            sequence += 20
        except ResponseError as error:
            refused = "maxmemory" in str(error)
    assert last_taken(client, keys) == sequence
    assert numbers(client, keys) == list(range(1, sequence + 1))
    assert client.hlen(keys.seen(0)[0]) == sequence
    client.config_set("maxmemory", "0")
    batch = [event(sequence + i) for i in range(1, 21)]
    assert append(client, keys, batch, expected=sequence) == Appended([])
    assert numbers(client, keys)[-1] == sequence + 20


def test_commit_and_park_work_on_a_full_server(make_redis, keys):
    """G4: a server without memory still records progress and dead letters; leases are renewed."""
    client = make_redis().client()
    owner = acquire(client, keys, "w")
    client.config_set("maxmemory", "1")
    with pytest.raises(ResponseError, match="maxmemory"):
        append(client, keys, [event(1)])
    assert commit(client, keys, owner.epoch)
    assert park(client, keys, owner.epoch, ("9-1", "k")) == 1
    assert renew(client, keys, owner.epoch, "w") == 1
    assert client.hget(keys.lane(0, "a"), "n") == b"1"


# -- leases ---------------------------------------------------------------------------------------


def test_a_taken_lane_is_not_given_away(redis_client, keys):
    """G5: a lane has one owner at a time, and each owner a higher epoch."""
    first = acquire(redis_client, keys, "one")
    assert acquire(redis_client, keys, "two") is None
    assert release(redis_client, keys, first.epoch, "one")
    assert acquire(redis_client, keys, "two").epoch == first.epoch + 1


def test_a_lane_is_taken_from_oneself_in_a_new_epoch(redis_client, keys):
    """G4, G5: who names the lease it holds takes the lane again; nobody died, and no event did it.

    What a thread of the old epoch still commits is refused.
    """
    first = acquire(redis_client, keys, "one", ms=60_000)
    redis_client.hset(keys.lane(0, "a"), "tries", "1:1")

    def again(worker: str, token: str) -> scripts.OwnedLane | None:
        call = scripts.acquire(keys, 0, "a", worker, 60_000, token=token)
        return scripts.run(redis_client, call)

    assert again("two", "") is None
    assert again("two", f"{first.epoch}:two") is None
    second = again("one", f"{first.epoch}:one")
    assert second is not None
    assert second.epoch == first.epoch + 1
    assert second.deaths == 0
    assert not redis_client.hexists(keys.lane(0, "a"), "tries")
    assert redis_client.get(keys.lease(0, "a")) == f"{second.epoch}:one".encode()
    assert not commit(redis_client, keys, first.epoch, n=7)


def test_the_epoch_grows_over_an_expired_lease(redis_client, keys):
    """G5: after an expiry the next owner's epoch is higher, so the last one's commit is refused."""
    first = acquire(redis_client, keys, "one", ms=1)
    second = wait_until(lambda: acquire(redis_client, keys, "two"), "the lease has expired")
    assert second.epoch == first.epoch + 1
    assert not commit(redis_client, keys, first.epoch, n=7)
    assert redis_client.hget(keys.lane(0, "a"), "n") is None
    assert commit(redis_client, keys, second.epoch, n=7)


def test_the_next_owner_goes_on_at_the_checkpoint(redis_client, keys):
    """G3: who takes a lane gets the place where the one before committed last."""
    first = acquire(redis_client, keys, "one")
    commit(redis_client, keys, first.epoch, n=5, entry="17-3")
    release(redis_client, keys, first.epoch, "one")
    second = acquire(redis_client, keys, "two")
    assert (second.entry, second.n) == ("17-3", 5)


def test_renew_never_makes_anothers_lease(redis_client, keys):
    """G5: a renewal of a lost lease says so and neither creates one nor touches another's."""
    lease = keys.lease(0, "a")
    assert renew(redis_client, keys, 1, "one") == 0
    assert not redis_client.exists(lease)
    epoch = acquire(redis_client, keys, "two", ms=5_000).epoch
    assert renew(redis_client, keys, epoch + 8, "one") == 0
    assert redis_client.pttl(lease) <= 5_000
    assert not release(redis_client, keys, epoch + 8, "one")
    assert redis_client.get(lease) == f"{epoch}:two".encode()


def test_leases_renewed_together_are_judged_apart(redis_client, keys):
    """G5: of leases renewed by one script a lost one, or another's key, costs no other its own."""
    epochs = [
        scripts.run(redis_client, scripts.acquire(keys, 0, name, "one", 5_000)).epoch
        for name in ("a", "b", "c")
    ]
    foreign = keys.lease(0, "b")
    redis_client.delete(foreign)
    redis_client.hset(foreign, "whose", "not ours")
    call = scripts.renew(
        [
            (OwnedLane(keys, 0, name, epoch, "one"), 60_000)
            for name, epoch in zip("abc", (epochs[0] + 1, *epochs[1:]), strict=True)
        ]
    )
    lost, unknown, kept = scripts.run(redis_client, call)
    assert (lost, kept) == (False, True)
    assert isinstance(unknown, redis.ResponseError)
    assert redis_client.pttl(keys.lease(0, "a")) <= 5_000 < redis_client.pttl(keys.lease(0, "c"))
    redis_client.delete(foreign)


def test_a_lease_that_another_had_since_is_not_made_again(redis_client, keys):
    """G5: once another owned the lane, even one that gave it up, a renewal finds it lost."""
    first = acquire(redis_client, keys, "one", ms=60_000).epoch
    redis_client.delete(keys.lease(0, "a"))
    second = acquire(redis_client, keys, "two", ms=60_000).epoch
    assert release(redis_client, keys, second, "two")
    assert renew(redis_client, keys, first, "one") == 0
    assert renew(redis_client, keys, second, "two") == 0
    assert not redis_client.exists(keys.lease(0, "a"))


def test_a_lease_that_ran_out_too_early_is_made_again(redis_client, keys):
    """G5: if the server's clock was set forward, the owner keeps a lane that nobody took since."""
    epoch = acquire(redis_client, keys, "one", ms=60_000).epoch
    redis_client.delete(keys.lease(0, "a"))
    assert renew(redis_client, keys, epoch, "one") == 1
    assert redis_client.get(keys.lease(0, "a")) == f"{epoch}:one".encode()
    assert acquire(redis_client, keys, "two") is None


def test_a_lane_that_was_lost_begins_above_its_epochs(redis_client, keys):
    """G5: a lane whose hash was lost with its epochs gives none of them a second time."""
    first = acquire(redis_client, keys, "one").epoch
    redis_client.delete(keys.lane(0, "a"), keys.lease(0, "a"))
    wait_until(lambda: redis_client.time()[0] * 1_000 > first, "time has gone by")
    assert acquire(redis_client, keys, "two").epoch > first


def test_the_done_set_goes_with_the_checkpoint(redis_client, keys):
    """G4: the next owner learns what was done above the checkpoint, and what may have been sent."""
    epoch = acquire(redis_client, keys, "one").epoch
    at = scripts.Checkpoint("5-1", 5, b"\x05 bits", 9)
    scripts.run(redis_client, scripts.commit(OwnedLane(keys, 0, "a", epoch), at))
    redis_client.delete(keys.lease(0, "a"))
    second = acquire(redis_client, keys, "two")
    assert (second.n, second.done, second.sent, second.deaths) == (5, b"\x05 bits", 9, 1)
    assert commit(redis_client, keys, second.epoch, n=6, entry="6-1")
    redis_client.delete(keys.lease(0, "a"))
    third = acquire(redis_client, keys, "three")
    assert (third.n, third.done, third.sent, third.deaths) == (6, b"", 9, 1)


def test_after_a_restart_everything_in_the_log_counts_as_sent(make_redis, keys):
    """G4, G5: a restarted server may have lost what lanes did last: new epochs, all is doubted."""
    server = make_redis(appendonly="yes")
    client = server.client()
    append(client, keys, [event(1), event(2), event(3)])
    first = acquire(client, keys, "one", ms=1)
    server.restart()
    client = server.client()
    second = wait_until(lambda: acquire(client, keys, "two"), "the lease has expired")
    assert second.epoch > first.epoch + 1
    assert second.sent == 3


def test_after_a_restart_an_owner_is_refused(make_redis, keys):
    """G3, G5, G6: what an owner knows from before a restart may be lost: it writes nothing more."""
    server = make_redis(appendonly="yes")
    epoch = acquire(server.client(), keys, "one").epoch
    assert owner_writes(server.client(), keys, epoch) == [True] * 4
    server.restart()
    client = server.client()
    before = client.hgetall(keys.lane(0, "a"))
    assert owner_writes(client, keys, epoch) == [False] * 4
    client.delete(keys.lease(0, "a"))
    assert renew(client, keys, epoch, "one") == 0, "nor is its lease made again"
    assert client.hgetall(keys.lane(0, "a")) == before
    second = acquire(client, keys, "one")
    assert second.deaths == 0
    assert owner_writes(client, keys, second.epoch, at=2) == [True] * 4


@pytest.mark.parametrize("known", [None, ""])
def test_an_owner_without_a_known_server_goes_on(redis_client, keys, known):
    """G5: a lane of an older release, or taken where INFO is not permitted, is not refused."""
    epoch = acquire(redis_client, keys, "one").epoch
    redis_client.hdel(keys.lane(0, "a"), "run")
    if known is not None:
        redis_client.hset(keys.lane(0, "a"), "run", known)
    assert owner_writes(redis_client, keys, epoch) == [True] * 4


def test_who_may_not_ask_for_the_server_goes_on(make_redis, keys):
    """G5: where INFO is not permitted any more, nothing is refused."""
    server = make_redis()
    epoch = acquire(server.client(), keys, "one").epoch
    server.client().hset(keys.lane(0, "a"), "run", "another")
    client = server.client()
    client.acl_setuser(
        "u", enabled=True, nopass=True, categories=["+@all"], commands=["-info"], keys=["*"]
    )
    client.execute_command("AUTH", "u", "")
    assert owner_writes(client, keys, epoch) == [True] * 4


def owner_writes(client: redis.Redis, keys: Keys, epoch: int, at: int = 1) -> list[bool]:
    """Commit, park, note a try and renew; return which of these were done."""
    return [
        commit(client, keys, epoch, n=at, entry=f"{at}-1"),
        park(client, keys, epoch, (f"{at}-1", "key")) is not None,
        note_tries(client, keys, epoch, b'{"7":1}'),
        bool(renew(client, keys, epoch, "one")),
    ]


def test_only_a_log_of_the_running_server_has_new_lanes(make_redis, keys):
    """G4: a lane that is not there is new, or was lost by a server before: that one doubts all."""
    server = make_redis(appendonly="yes")
    append(server.client(), keys, [event(1), event(2), event(3)])
    assert acquire(server.client(), keys, "one").sent == 0
    server.client().delete(keys.lane(0, "a"), keys.lease(0, "a"))
    server.restart()
    for _ in range(2):  # however often it is lost
        assert acquire(server.client(), keys, "two").sent == 3
        server.client().delete(keys.lane(0, "a"), keys.lease(0, "a"))
    server.client().hdel(keys.state(0), "run")  # by a release that did not note it
    assert acquire(server.client(), keys, "three").sent == 3


def test_what_was_called_at_a_death_is_suspected(redis_client, keys):
    """G6: the next owner learns what the dead one was calling; a death without calls adds nothing.

    What was suspected before stays so, also when an owner gives the lane up in order.
    """

    def taken(worker: str, *, killed: bool = True) -> scripts.OwnedLane:
        lane = acquire(redis_client, keys, worker)
        assert commit(redis_client, keys, lane.epoch, n=lane.n + 1)
        if not killed:
            scripts.run(redis_client, scripts.release(lane))
        redis_client.delete(lease)
        return lane

    lease = keys.lease(0, "a")
    first = taken("one")
    assert note_tries(redis_client, keys, first.epoch, b'{"4":1,"5":1}')
    assert not note_tries(redis_client, keys, first.epoch + 1, b'{"6":1}')
    second, third = taken("two"), taken("three", killed=False)
    assert (first.suspects, second.suspects, third.suspects) == (b"", *[b'{"4":1,"5":1}'] * 2)
    fourth = taken("four")
    assert note_tries(redis_client, keys, fourth.epoch, b'{"5":2}', fourth.suspects)
    assert taken("four").suspects == fourth.suspects, "it is not dead, and calls for nothing now"
    assert note_tries(redis_client, keys, fourth.epoch + 1, b'{"5":2}')
    assert taken("five").suspects == b'{"5":2}'


def test_a_call_that_returned_is_not_suspected(redis_client, keys):
    """G6: an owner that clears its note before it dies leaves no suspect."""
    epoch = acquire(redis_client, keys, "one").epoch
    assert note_tries(redis_client, keys, epoch, b'{"4":1}', b'{"4":1}')
    assert note_tries(redis_client, keys, epoch, b"")
    redis_client.delete(keys.lease(0, "a"))
    assert acquire(redis_client, keys, "two").suspects == b""


def test_a_death_is_an_owner_that_neither_released_nor_came_back(redis_client, keys):
    """G6: who loses a lease and takes its lane again has not died."""
    lease = keys.lease(0, "a")
    deaths = []
    for worker in ("one", "one", "two", "two", "one"):
        deaths.append(acquire(redis_client, keys, worker).deaths)
        redis_client.delete(lease)
    assert deaths == [0, 0, 1, 1, 2]


def test_a_commit_shows_in_the_consumer_group(redis_client, keys):
    """G5: the group of the provider's name mirrors the checkpoint, for ordinary tools."""
    append(redis_client, keys, [event(1), event(2)])
    owner = acquire(redis_client, keys, "w")
    entries: Any = redis_client.xrange(keys.log(0))
    commit(redis_client, keys, owner.epoch, n=1, entry=entries[0][0].decode())
    groups: Any = redis_client.xinfo_groups(keys.log(0))
    assert [(g["name"], g["last-delivered-id"]) for g in groups] == [(b"a", entries[0][0])]


def test_park_is_fenced_and_puts_an_event_aside_once(redis_client, keys):
    """G6: an event put aside again, as after a crash before the commit, stands there once."""
    owner = acquire(redis_client, keys, "w")
    assert park(redis_client, keys, owner.epoch, ("9-3", "k"), ("9-5", "k"), ("9-4", "other")) == 3
    assert park(redis_client, keys, owner.epoch, ("9-3", "k"), ("9-5", "k"), ("9-6", "k")) == 4
    assert park(redis_client, keys, owner.epoch, ("10-1", "k"), ("9-7", "k")) == 5, "by number"
    assert park(redis_client, keys, owner.epoch + 1, ("9-7", "k")) is None
    assert park(redis_client, keys, 0, ("9-7", "k")) is None
    assert redis_client.xlen(keys.dead(0, "a")) == 5
    assert redis_client.hgetall(keys.parked(0, "a")) == {b"k": b"10-1 4", b"other": b"9-4 1"}
    assert redis_client.hget(keys.lane(0, "a"), "parked") == b"5"


# -- recall ---------------------------------------------------------------------------------------


def warm(client: redis.Redis, keys: Keys, generation: int, result: bytes) -> bool:
    scripts.run(client, scripts.store_warm(keys, "slot", "p", generation, result, 60_000))
    return client.hget(keys.warm("slot"), "p") == result


def test_an_older_result_never_overwrites_a_newer_one(redis_client, keys):
    """G9: results are kept by generation: newer wins, older is refused, unasked is refused."""
    assert not warm(redis_client, keys, 1, b"unasked")
    for generation in (1, 2, 3):
        call = scripts.request_recall(keys, "slot", b"{}", 60_000)
        assert scripts.run(redis_client, call) == generation
    assert warm(redis_client, keys, 2, b"two")
    assert not warm(redis_client, keys, 1, b"one")
    assert warm(redis_client, keys, 3, b"three")
    assert not warm(redis_client, keys, 4, b"of the future")
    assert redis_client.hget(keys.warm("slot"), "p") == b"three"
    assert 0 < redis_client.pttl(keys.warm("slot")) <= 60_000
    assert 0 < redis_client.pttl(keys.want("slot")) <= 60_000


# -- a server that forgot -------------------------------------------------------------------------


def test_a_forgotten_script_is_loaded_again(redis_client, keys):
    """G2: after SCRIPT FLUSH a call, alone or among others, works and works once."""
    append(redis_client, keys, [event(1)])
    redis_client.script_flush()
    append(redis_client, keys, [event(2)], expected=1)
    redis_client.script_flush()
    calls = [scripts.append(keys, p, "p", 0, [event(1)], window_ms=HOUR, max_ids=9) for p in (1, 2)]
    replies = scripts.run_many(
        redis_client, [*calls, scripts.request_recall(keys, "slot", b"{}", 1_000)]
    )
    assert replies[:2] == [Appended([])] * 2
    assert replies[2] == 1
    assert numbers(redis_client, keys) == [1, 2]
