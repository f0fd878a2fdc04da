"""An archiver gives repeated numbers anew: Redis came back older than its archive (G2, G7)."""

from collections.abc import Iterator

import msgspec
import pytest
from helpers.archive.sealed_log import QUICK, SealedLog, may_stay, refused
from helpers.making import MakeServer, MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers import recording
from helpers.redis.clusters import with_replica
from helpers.redis.log import read_health
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import NAME, home, recorded, thread_worker
from memorybus.errors import ArchiveTaken, LeaseLost
from memorybus.history.history import History
from memorybus.log.continuity import Gap
from memorybus.redis import scripts
from memorybus.redis.keys import ARCHIVE_LANE
from memorybus.redis.scripts import Checkpoint, OwnedLane
from memorybus_workers.archiving.archiver import run_once
from memorybus_workers.archiving.renumbering import Renumbering, RepeatedNumbers

P = SealedLog.PARTITION


@pytest.fixture(name="server")
def _server(make_redis: MakeServer) -> RedisServer:
    """Return a server that is killed back to its last copy: only `save` writes one."""
    return make_redis()


@pytest.fixture(name="log")
def _log(server: RedisServer, make_settings: MakeSettings) -> Iterator[SealedLog]:
    log = SealedLog(make_settings(url=server.url, **QUICK, **recorded("Transactional")))
    yield log
    log.redis.close()


def fall_back(log: SealedLog) -> None:
    """Seal 50 events, and put the keys of the first 40 back, where 5 more are published.

    The server goes on meanwhile, as one does beside whose archive a copy of it works.
    """
    log.grow(40)
    copied = {key: log.redis.dump(key) for key in log.redis.scan_iter()}
    log.grow(10)
    log.redis.flushdb()
    for key, value in copied.items():
        log.redis.restore(key, 0, value)
    log.append(5)


def turns(log: SealedLog) -> list[int]:
    """Return the numbers of the turns in the history, in its order."""
    history = History.from_settings(log.redis, log.settings)
    after, n, found = "0-0", 0, list[int]()
    while page := history.read(P, after, 100, after_n=n).events:
        found += [int(one.envelope.event.user.split()[1]) for one in page]
        after, n = page[-1].position.entry, page[-1].position.n
    history.close()
    return found


def applied(log: SealedLog, name: str = NAME) -> list[int]:
    """Return the numbers of the turns that a provider holds, in the order of application."""
    return [int(one.split()[1]) for one in recording.texts(home(log.settings, name))]


def test_beside_a_server_that_goes_on_nothing_is_given_anew(log):
    """G7: nothing is sealed or lost until an operator decides; then all is one history."""
    fall_back(log)
    assert log.logged() == list(range(40, 46))
    assert "does not have event 41" in refused(log)
    assert "does not have event 41" in refused(log)
    assert log.logged() == list(range(40, 46))
    may_stay(log)
    assert refused(log) == ""
    log.append(3)
    assert log.logged() == [40, *range(51, 59)]
    assert run_once(log.settings).errors == {}
    assert log.archived() == list(range(1, 59))
    log.assert_whole()
    assert turns(log) == list(range(1, 59))
    health = read_health(log.settings)
    assert health.continuity.gaps == []
    (ahead,) = [alarm for alarm in health.alarms if alarm.code == "archive_ahead"]
    assert "partition p01: events 41 to 50" in ahead.text


def test_a_replica_that_lacked_a_sealed_tail_needs_no_operator(make_redis, make_settings):
    """G7: what a promoted replica takes before it knows the archive's end gets new numbers."""
    master, replica = with_replica(make_redis)
    log = SealedLog(make_settings(url=master.url, **QUICK))
    log.grow(40)
    log.redis.wait(1, 10_000)
    replica.client().replicaof("no", "one")
    log.grow(10)
    promoted = SealedLog(msgspec.structs.replace(log.settings, url=replica.url))
    promoted._sequence = 50
    promoted.append(5)
    assert promoted.logged()[-5:] == [41, 42, 43, 44, 45]
    assert refused(promoted) == ""
    assert promoted.logged()[-5:] == [51, 52, 53, 54, 55]
    assert run_once(promoted.settings).errors == {}
    promoted.assert_whole()
    assert turns(promoted) == list(range(1, 56))
    log.redis.close()
    promoted.redis.close()


def test_what_a_restored_redis_took_too_early_gets_new_numbers(server, log):
    """G7: events that come before Redis knows its archive's end are sealed without an operator."""
    log.append(40)
    log.redis.save()
    log.grow(10)
    server.restart()
    log.append(5)
    assert log.logged()[-5:] == [41, 42, 43, 44, 45]
    assert run_once(log.settings).errors == {}
    assert log.logged()[-5:] == [51, 52, 53, 54, 55]
    log.append(3)
    assert run_once(log.settings).errors == {}
    assert log.archived() == list(range(1, 59))
    log.assert_whole()
    assert turns(log) == list(range(1, 59))
    (ahead,) = [a for a in read_health(log.settings).alarms if a.code == "archive_ahead"]
    assert "partition p01: events 41 to 50" in ahead.text


def test_a_provider_gets_each_event_once(server, log):
    """G3, G4: what comes again at new places is known to a ledger, whoever had applied what."""
    late = msgspec.structs.replace(
        log.settings, providers=("late",), provider={"late": log.settings.provider[NAME]}
    )
    log.append(40)
    log.redis.save()
    with thread_worker(log.settings):
        log.append(10)
        wait_until(lambda: len(applied(log)) == 50 == log.sealed(), "50 are applied and sealed")
    server.restart()
    log.append(5)
    with thread_worker(log.settings):
        wait_until(lambda: log.sealed() == log.head() == 55, "the five have numbers of their own")
        log.append(5)
        wait_until(lambda: log.sealed() == log.head() == 60, "all is sealed")
        wait_until(lambda: len(applied(log)) >= 60, "all are applied")
    assert applied(log) == list(range(1, 61))
    with thread_worker(late):
        wait_until(lambda: len(applied(log, "late")) >= 60, "all are applied by who comes later")
    assert applied(log, "late") == list(range(1, 61))


def test_a_lane_that_took_repeated_numbers_gets_those_of_the_archive_too(server, log):
    """G4: a lane that had not applied what only the archive has goes back to apply it."""
    slowly = msgspec.structs.replace(log.settings, segment_age=600.0)
    with thread_worker(slowly):
        log.append(40)
        wait_until(lambda: len(applied(log)) == 40, "the first 40 are applied")
    log.redis.save()
    log.grow(10)
    server.restart()
    log.append(5)
    with thread_worker(slowly):
        wait_until(lambda: len(applied(log)) == 45, "the repeated numbers are applied")
        run_once(log.settings)
        wait_until(lambda: len(applied(log)) == 55, "the archive's events are applied")
    assert sorted(applied(log)) == list(range(1, 56))


def test_lanes_forget_the_old_numbers(log):
    """G3, G4: a done-set of old numbers, an owner's too, passes over no event that has them now."""
    fall_back(log)
    first = taken(log)
    done = Checkpoint("0-0", 0, b"a done-set", 3)
    assert committed(log, first.epoch, done)
    scripts.run(log.redis, scripts.note_tries(owned(log, first.epoch), b"", b'{"42":1}'))
    may_stay(log)
    assert refused(log) == ""
    assert not committed(log, first.epoch, done)
    assert scripts.run(log.redis, scripts.renew([(first, 60_000)])) == [False]
    scripts.run(log.redis, scripts.release(first))
    second = taken(log)
    assert (second.done, second.sent, second.deaths) == (b"", log.head(), 0)
    assert (second.suspects, second.epoch > first.epoch) == (b"", True)


def taken(log: SealedLog) -> OwnedLane:
    """Take the provider's lane."""
    call = scripts.acquire(log.keys, P, NAME, "w", 60_000)
    lane = scripts.run(log.redis, call)
    assert lane is not None
    return lane


def owned(log: SealedLog, epoch: int) -> OwnedLane:
    """Return the provider's lane as its owner of an epoch addresses it."""
    return OwnedLane(log.keys, P, NAME, epoch)


def committed(log: SealedLog, epoch: int, at: Checkpoint) -> bool:
    """Commit as that lane's owner; return whether the checkpoint was advanced."""
    call = scripts.commit(owned(log, epoch), at)
    try:
        scripts.run(log.redis, call)
    except LeaseLost:
        return False
    return True


def test_what_was_missing_stays_missing(log):
    """G7: new numbers do not hide what was lost: before, between and behind what is there."""
    log.grow(20)
    log.redis.xtrim(log.key, maxlen=0, approximate=False)
    log.redis.hset(log.state, mapping={"n": 10, "sealed": 0})
    log.append(10)
    entries = log.redis.xrange(log.key)
    log.redis.xdel(log.key, entries[3][0], entries[4][0], entries[9][0])
    log.redis.xadd(log.key, {"hello": "world"})
    log.redis.hset(log.state, "sealed", 20)
    assert refused(log) == ""
    numbers = [int(f[b"n"]) for _, f in log.redis.xrange(log.key) if b"n" in f]
    assert numbers == [21, 22, 23, 26, 27, 28, 29]
    assert log.head() == 30
    gaps = read_health(log.settings).continuity.gaps
    assert Gap(P, 30, 30, 1) in gaps
    run_once(log.settings)
    assert log.archived() == [*range(1, 24), *range(26, 30)]


def test_a_stale_archiver_renumbers_nothing(log):
    """G5: numbers change only under the newest epoch of the archiver's lane."""
    fall_back(log)
    log.redis.hdel(log.state, "sealed_run")
    end = log.archive().end(P)
    assert end is not None
    renumbering = Renumbering(log.redis, log.keys)
    repeated = renumbering.find_behind(P, end)
    assert repeated == RepeatedNumbers(41, end.entry, end)
    log.redis.hset(log.keys.lane(P, ARCHIVE_LANE), "epoch", 7)
    with pytest.raises(ArchiveTaken, match="another archiver"):
        renumbering.mend(OwnedLane(log.keys, P, ARCHIVE_LANE, 6), log.archive(), repeated)
    assert log.logged() == list(range(40, 46))
    renumbering.mend(OwnedLane(log.keys, P, ARCHIVE_LANE, 7), log.archive(), repeated)
    assert log.logged() == [40, *range(51, 56)]
