"""``memorybus archive repair``: Redis came back from an older copy than the archive (G2, G7)."""

import json
from collections.abc import Iterator

import msgspec
import pytest
from helpers.archive.sealed_log import QUICK, SealedLog, found_by_commands
from helpers.making import MakeServer, MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers import recording
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import NAME, home, recorded, thread_worker
from memorybus.archive.renumbering import Renumbering
from memorybus.errors import ArchiveTaken
from memorybus.health.log_health import read_health
from memorybus.history.history import History
from memorybus.log.continuity import Gap
from memorybus.redis import scripts
from memorybus.redis.owned_lane import OwnedLane
from memorybus.redis.scripts import AcquiredLane, Checkpoint
from memorybus.testing import FakeClock
from memorybus_console.cli import main
from memorybus_workers.archiving.archiver import run_once

P = SealedLog.PARTITION


@pytest.fixture(name="server")
def _server(make_redis: MakeServer) -> RedisServer:
    """Return a server that is killed back to its last copy: only `save` writes one."""
    return make_redis()


@pytest.fixture(name="log")
def _log(
    server: RedisServer, make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SealedLog]:
    log = SealedLog(make_settings(url=server.url, **QUICK, **recorded("Transactional")))
    found_by_commands(log, monkeypatch)
    yield log
    log.redis.close()


def fall_back(log: SealedLog) -> None:
    """Seal 50 events, and put the keys of the first 40 back, where 5 more are published.

    The server goes on meanwhile, as one does beside whose archive a copy of it works.
    """
    log.append(40)
    copied = {key: log.redis.dump(key) for key in log.redis.scan_iter()}
    log.grow(10)
    log.redis.flushdb()
    for key, value in copied.items():
        log.redis.restore(key, 0, value)  # type: ignore[arg-type]
    log.append(5)


def come_back_older(server: RedisServer, log: SealedLog) -> None:
    """Let Redis start again from its last copy, in a later second than what was sealed."""
    sealed_at = int(log.redis.time()[0])  # type: ignore[index]
    wait_until(lambda: int(log.redis.time()[0]) > sealed_at, "a second has passed")  # type: ignore[index]
    server.restart()


def turns(log: SealedLog) -> list[int]:
    """Return the numbers of the turns in the history, in its order."""
    history = History.from_settings(log.redis, log.settings)
    after, n, found = "0-0", 0, list[int]()
    while page := history.read(P, after, 100, after_n=n).events:
        found += [int(one.envelope.event.user.split()[1]) for one in page]  # type: ignore[union-attr]
        after, n = page[-1].position.entry, page[-1].position.n
    history.close()
    return found


def applied(log: SealedLog, name: str = NAME) -> list[int]:
    """Return the numbers of the turns that a provider holds, in the order of application."""
    return [int(one.split()[1]) for one in recording.texts(home(log.settings, name))]


def repair(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """Run the command with --json."""
    assert main(["archive", "repair", *words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_numbers_given_twice_beside_a_server_that_goes_on_are_given_anew(
    log: SealedLog, capsys: pytest.CaptureFixture[str]
) -> None:
    """G7: nothing is sealed or lost until the repair; then all is one history, in order."""
    fall_back(log)
    assert log.logged()[-5:] == [41, 42, 43, 44, 45]
    done = run_once(log.settings)
    assert done.events == 0
    assert "memorybus archive repair --execute" in done.errors["p01"]
    log.append(3)
    assert log.logged()[-3:] == [51, 52, 53]  # above what is sealed: Redis knows of it by now
    would = repair(capsys)
    assert (would["entries"], would["executed"]) == (0, False)
    (twice,) = would["twice"]  # type: ignore[misc]
    assert (twice["partition"], twice["after"], twice["entries"]) == (P, 41, 8)
    assert repair(capsys, "--execute")["entries"] == 8
    log.append(2)
    assert log.logged()[-10:] == list(range(51, 61))
    assert run_once(log.settings).errors == {}
    assert log.archived() == list(range(1, 61))
    log.assert_whole()
    assert turns(log) == list(range(1, 61))
    health = read_health(log.settings)
    assert health.continuity.gaps == []
    assert "numbering" not in {alarm.code for alarm in health.alarms}
    assert repair(capsys, "--execute")["twice"] == []


def test_what_a_restored_redis_took_too_early_gets_new_numbers(
    server: RedisServer, log: SealedLog
) -> None:
    """G7: events that come before Redis knows its archive's end are sealed without an operator."""
    log.append(40)
    log.redis.save()
    log.grow(10)
    come_back_older(server, log)
    log.append(5)
    assert log.logged()[-5:] == [41, 42, 43, 44, 45]
    assert run_once(log.settings).errors == {}
    assert log.logged()[-5:] == [51, 52, 53, 54, 55]
    log.append(3)
    assert run_once(log.settings).errors == {}
    assert log.archived() == list(range(1, 59))
    log.assert_whole()
    assert turns(log) == list(range(1, 59))
    assert "numbering" not in {alarm.code for alarm in read_health(log.settings).alarms}


def test_a_provider_gets_each_event_once(server: RedisServer, log: SealedLog) -> None:
    """G3, G4: what comes again at new places is known to a ledger, whoever had applied what."""
    late = msgspec.structs.replace(
        log.settings, providers=("late",), provider={"late": log.settings.provider[NAME]}
    )
    log.append(40)
    log.redis.save()
    with thread_worker(log.settings):
        log.append(10)
        wait_until(lambda: len(applied(log)) == 50 == log.sealed(), "50 are applied and sealed")
    come_back_older(server, log)
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


def test_a_lane_that_took_repeated_numbers_gets_those_of_the_archive_too(
    server: RedisServer, log: SealedLog
) -> None:
    """G4: a lane that had not applied what only the archive has goes back to apply it."""
    slowly = msgspec.structs.replace(log.settings, segment_age=600.0)
    with thread_worker(slowly):
        log.append(40)
        wait_until(lambda: len(applied(log)) == 40, "the first 40 are applied")
    log.redis.save()
    log.grow(10)
    come_back_older(server, log)
    log.append(5)
    with thread_worker(slowly):
        wait_until(lambda: len(applied(log)) == 45, "the repeated numbers are applied")
        run_once(log.settings)
        wait_until(lambda: len(applied(log)) == 55, "the archive's events are applied")
    assert sorted(applied(log)) == list(range(1, 56))


def test_lanes_forget_the_old_numbers(log: SealedLog) -> None:
    """G3, G4: a done-set of old numbers, an owner's too, passes over no event that has them now."""
    fall_back(log)
    run_once(log.settings)  # Redis learns what is sealed
    first = taken(log)
    done = Checkpoint("0-0", 0, b"a done-set", 3)
    assert committed(log, first.epoch, done)
    scripts.run(log.redis, scripts.note_tries(owned(log, first.epoch), b"", b'{"42":1}'))
    renumbering = Renumbering(log.redis, log.keys, log.archive(), FakeClock())
    twice = renumbering.find(P)
    assert twice is not None
    assert renumbering.mend(twice) == 5
    assert not committed(log, first.epoch, done)
    lease, lane = log.keys.lease(P, NAME), log.keys.lane(P, NAME)
    renewal = scripts.Renewal(lease, lane, first.epoch, "w", 60_000)
    assert scripts.run(log.redis, scripts.renew([renewal])) == [False]
    scripts.run(log.redis, scripts.release(lease, lane, f"{first.epoch}:w"))
    second = taken(log)
    assert (second.done, second.sent, second.deaths) == (b"", log.head(), 0)
    assert (second.suspects, second.epoch > first.epoch) == (b"", True)


def taken(log: SealedLog) -> AcquiredLane:
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
    return scripts.run(log.redis, call) == scripts.Written()


def test_what_was_missing_stays_missing(log: SealedLog) -> None:
    """G7: new numbers do not hide what was lost: before, between and behind what is there."""
    log.grow(20)
    log.redis.hset(log.state, mapping={"n": 10, "sealed": 0})
    log.append(10)
    entries = log.redis.xrange(log.key)
    log.redis.xdel(log.key, entries[4][0], entries[5][0], entries[10][0])  # type: ignore[index]
    log.redis.xadd(log.key, {"hello": "world"})
    log.redis.hset(log.state, "sealed", 20)
    renumbering = Renumbering(log.redis, log.keys, log.archive(), FakeClock())
    twice = renumbering.find(P)
    assert twice is not None
    assert (twice.entries, renumbering.mend(twice)) == (7, 7)
    numbers = [int(f[b"n"]) for _, f in log.redis.xrange(log.key) if b"n" in f]  # type: ignore[union-attr]
    assert numbers == [20, 21, 22, 23, 26, 27, 28, 29]
    assert log.head() == 30
    gaps = read_health(log.settings).continuity.gaps
    assert Gap(P, 30, 30, 1) in gaps
    run_once(log.settings)
    assert log.archived() == [*range(1, 24), *range(26, 30)]


def test_an_archiver_at_work_is_not_disturbed(log: SealedLog) -> None:
    """G5: numbers change only under the partition's lease, and where archive and Redis agree."""
    fall_back(log)
    renumbering = Renumbering(log.redis, log.keys, log.archive(), FakeClock())
    twice = renumbering.find(P)
    assert twice is not None
    with pytest.raises(ArchiveTaken, match="run: memorybus archive run"):
        renumbering.mend(twice)
    run_once(log.settings)  # Redis learns what is sealed
    before = log.logged()
    lease = log.keys.lease(P, "@archive")
    log.redis.set(lease, "7:other", px=60_000)
    with pytest.raises(ArchiveTaken, match="at work on it"):
        renumbering.mend(twice)
    log.redis.delete(lease)
    assert log.logged() == before
    assert renumbering.mend(twice) == 5
    assert not log.redis.exists(lease)
