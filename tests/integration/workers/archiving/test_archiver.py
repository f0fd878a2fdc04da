"""The archiver on a real server: what is sealed, what is trimmed, and what never is (G7)."""

import re
from contextlib import closing

import msgspec
import pytest
import redis
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.processes.waiting import wait_until
from helpers.redis.log import read_health
from helpers.stories.scenario import environ
from memorybus.clock import SYSTEM
from memorybus.errors import ArchiveUnavailable, LeaseLost, LogReplaced, install_command
from memorybus.health.monitor import read_status
from memorybus.ids import new_rng
from memorybus.log.entry import Place, parse_entry_id
from memorybus.log.stream import EventLog
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.facts import read_server_ms
from memorybus.redis.keys import ARCHIVE_LANE
from memorybus.redis.scripts import OwnedLane
from memorybus.testing import FakeClock, no_crash
from memorybus.text.display import iso
from memorybus_workers.archiving.archiver import ArchiverThread, make_archiving, run_once
from memorybus_workers.lanes.leases import Lease, Leases
from memorybus_workers.watch.watch import POLL_SECONDS, LogWatch

P = SealedLog.PARTITION


def test_a_log_is_sealed_and_trimmed(log):
    """G7: what is sealed leaves the log, all but its last entry; nothing is missing anywhere."""
    log.append(230)
    assert run_once(log.settings).events == 230
    assert log.archived() == list(range(1, 231))
    assert log.logged() == [230]
    assert log.sealed() == 230
    log.assert_whole()
    health = read_health(log.settings)
    assert health.continuity.gaps == []
    assert {alarm.code for alarm in health.alarms} <= {"no_append_only_file"}


def test_a_segment_holds_so_many_events(log):
    """G10: segments are sealed with `segment_events`, and the last one with what is left."""
    log.grow(120)
    assert [segment.count for segment in log.archive().segments(P)] == [50, 50, 20]


def test_the_hot_window_stays(log, make_settings):
    """G7: a sealed event stays in the log for the hot window."""
    log.append(60)
    run_once(make_settings(**QUICK | {"hot_window": 3600.0}))
    assert log.sealed() == 60
    assert log.logged() == list(range(1, 61))


def test_what_redis_may_lose_is_not_sealed(log, make_settings):
    """G7: an event is sealed only after `seal_after`: before, Redis may lose and number it anew."""
    log.append(60)
    run_once(make_settings(**QUICK | {"seal_after": 3600.0}))
    assert (log.sealed(), log.archived()) == (0, [])
    assert log.logged() == list(range(1, 61))


def test_nothing_unsealed_is_ever_trimmed(log, make_settings):
    """G7: whatever the hot window, an event that the archive lacks stays."""
    log.grow()
    log.append(30)
    run_once(make_settings(**QUICK | {"seal_after": 3600.0}))
    assert log.logged() == list(range(51, 81))
    log.assert_whole()


def test_redis_learns_what_the_archive_has(log):
    """G7: where Redis forgot what is sealed, the archive is the truth."""
    log.grow()
    log.redis.hdel(log.state, "sealed", "sealed_entry")
    assert run_once(log.settings).events == 0
    assert log.sealed() == 50
    log.assert_whole()


def test_sealed_numbers_are_never_given_again(log):
    """G2, G7: a log that lost its tail below what is sealed goes on above it, and says so."""
    log.grow()
    log.redis.hset(log.state, "n", 40)
    (alarm,) = [a for a in read_health(log.settings).alarms if a.code == "archive_ahead"]
    assert "events 41 to 50; only the archive has them" in alarm.text
    log.append(5)
    assert log.logged() == [50, 51, 52, 53, 54, 55]
    run_once(log.settings)
    assert log.archived() == list(range(1, 56))
    assert read_health(log.settings).continuity.gaps == []


def test_what_the_archive_has_may_be_deleted_by_hand(log, make_settings):
    """G7: what was trimmed or deleted by hand is a loss only where the archive lacks it."""
    log.append(60)
    run_once(make_settings(**QUICK | {"hot_window": 3600.0}))
    log.append(20)
    entries = {n: entry for n, (entry, _) in enumerate(log.redis.xrange(log.key), 1)}
    log.redis.xdel(log.key, entries[30])
    assert read_health(log.settings).continuity.gaps == []
    log.redis.xtrim(log.key, minid=entries[50], approximate=False)
    assert read_health(log.settings).continuity.gaps == []
    log.redis.xdel(log.key, entries[70])
    (gap,) = read_health(log.settings).continuity.gaps
    assert (gap.first, gap.last) == (70, 70)
    log.redis.xtrim(log.key, minid=entries[65], approximate=False)
    gaps = read_health(log.settings).continuity.gaps
    assert [(gap.first, gap.last) for gap in gaps] == [(61, 64), (70, 70)]


def test_what_was_lost_before_it_was_sealed_stays_told(log):
    """G7: a gap in the log is written down before it is sealed over, and sealing goes on."""
    log.append(30)
    entries = log.redis.xrange(log.key)
    log.redis.xdel(log.key, entries[9][0], entries[10][0])
    run_once(log.settings)
    assert log.archived() == [*range(1, 10), *range(12, 31)]
    (gap,) = read_health(log.settings).continuity.gaps
    assert gap.record.startswith("gap:")
    assert (gap.first, gap.last) == (10, 11)
    (alarm,) = [a for a in read_health(log.settings).alarms if a.code == "data_loss"]
    assert "events 10 to 11 are gone" in alarm.text


def test_strangers_are_not_sealed(log):
    """G6: entries of others are no events: they are not archived, and shift no number."""
    log.append(5)
    log.redis.xadd(log.key, {"hello": "world"})
    log.append(5)
    log.redis.xadd(log.key, {"hello": "again"})
    run_once(log.settings)
    assert log.sealed() == 10
    assert log.archived() == [*range(1, 11)]
    log.grow(1)
    assert log.sealed() == 11
    assert log.archived() == [*range(1, 12)]


def test_an_archive_that_is_gone_is_not_begun_anew(log):
    """G7: where something was sealed, an empty archive is an unmounted disk: nothing is done."""
    log.grow()
    place = log.settings.data_dir / "archive"
    place.rename(place.with_name("elsewhere"))
    log.append(50)
    done = run_once(log.settings)
    assert done.events == 0
    assert "the archive lacks events 1 to 49 of partition p01" in done.errors["p01"]
    assert log.logged() == list(range(50, 101))
    place.with_name("elsewhere").rename(place)
    assert run_once(log.settings).events == 50
    log.assert_whole()


def test_an_older_archive_takes_what_the_log_still_has(log, make_settings):
    """G7: an archive restored from before goes on where it ends, if the log still has the rest."""
    settings = make_settings(**QUICK | {"hot_window": 3600.0})
    log.append(50)
    run_once(settings)
    log.append(50)
    run_once(settings)
    newest = max(settings.data_dir.glob("archive/*/*/p01/manifest-*"))
    newest.unlink()
    assert run_once(settings).events == 50
    log.assert_whole()


def test_the_thread_archives_by_itself(log):
    """G7: a worker's archiver seals and trims without being asked, and shows how it fares."""
    log.append(120)
    archiver = ArchiverThread(log.settings, SYSTEM, "w", new_rng(), no_crash)
    archiver.start()
    try:
        wait_until(lambda: log.sealed() == 120 and log.logged() == [120], "all is archived")
        status = wait_until(
            lambda: s if (s := read_status(log.settings).archive).segments else None, "it shows"
        )
    finally:
        archiver.stop()
    assert (status.working, status.error, status.sealed, status.unsealed) == (True, "", 120, 0)
    assert status.place is not None
    assert not list(log.redis.scan_iter("*lease*"))
    assert read_status(log.settings).archive.error.startswith("no worker archives")


def contents(log: SealedLog) -> list[str]:
    """Return the names of the rows' events, in order."""
    archive = log.archive()
    found = [type(one.envelope.event).__name__ for one in archive.read(P, "0-0", 1000)]
    archive.close()
    return found


def test_retention_takes_out_what_is_too_old(log, make_settings):
    """G10: rows older than their scope's retention lose their content, not their numbers."""
    log.append(20, user="ann")
    log.append(20, user="bob")
    run_once(log.settings)
    assert contents(log) == ["TurnCompleted"] * 40
    short = make_settings(**QUICK | {"retention": {"user:ann": 0.001}})
    wait_until(lambda: run_once(short) and "Omitted" in contents(log), "it is taken out")
    assert contents(log) == ["Omitted"] * 20 + ["TurnCompleted"] * 20
    assert log.archived() == list(range(1, 41))


def test_what_is_too_old_is_taken_out_as_it_is_sealed(log, make_settings):
    """G10: a backlog that outlived its retention is not kept because it was sealed late."""
    log.append(20, user="ann")
    log.append(20, user="bob")
    settings = make_settings(**QUICK | {"retention": {"user:ann": 0.001}})
    wait_until(lambda: run_once(settings) and log.sealed() == 40, "it is sealed")
    assert contents(log) == ["Omitted"] * 20 + ["TurnCompleted"] * 20
    (segment,) = log.archive().segments(P)
    assert [one.name.rpartition("/")[2] for one in log.archive().objects.list("p01/segments")] == [
        segment.file.rpartition("/")[2]
    ]  # it was never written with them
    run_once(settings)
    assert log.archive().segments(P)[0].sha256 == segment.sha256  # once is enough


def test_small_segments_are_merged_while_somebody_reads(log):
    """G7: a reader of segments that are merged meanwhile gets every row once."""
    reader = log.archive()
    seen: list[int] = []
    last = "0-0"
    for _ in range(12):
        log.grow(5)
        for event in reader.read(P, last, 3):
            seen.append(event.position.n)
            last = event.position.entry
    while page := reader.read(P, last, 7):
        seen += [event.position.n for event in page]
        last = page[-1].position.entry
    reader.close()
    assert seen == list(range(1, 61))
    assert len(log.archive().segments(P)) < 8
    log.assert_whole()


def test_a_slow_lane_is_as_old_as_what_it_lacks(log):
    """G7: what a lane has not applied is as old as it is, also where the log was trimmed."""
    log.append(20)
    entries = log.redis.xrange(log.key)
    first = int(entries[0][0].split(b"-")[0])
    run_once(log.settings)
    assert log.logged() == [20]
    log.redis.hset(log.keys.lane(P, "builtin"), mapping={"entry": "0-0", "n": 0})
    (builtin, *_) = read_status(log.settings).providers
    assert builtin.oldest_unapplied_at == iso(first)


def test_an_archive_on_another_host_is_left_alone(log, make_settings, tmp_path):
    """G7: only the worker in whose data_dir the archive lies seals; others say where it is."""
    log.grow(20)
    log.append(20)
    elsewhere = make_settings(**QUICK, data_dir=tmp_path / "other")
    done = run_once(elsewhere)
    assert (done.elsewhere, done.events) == (True, 0)
    assert log.sealed() == 20
    assert read_status(log.settings).archive.home is not None
    assert run_once(log.settings).events == 20


def test_without_the_extra_nothing_is_trimmed(log, monkeypatch):
    """G7, G9: where the archive's libraries are missing the remedy is shown, and the log stays."""
    monkeypatch.setattr("memorybus_workers.archiving.round.find_spec", lambda _: None)
    log.append(20)
    with pytest.raises(ArchiveUnavailable, match=re.escape(install_command("archive"))):
        run_once(log.settings)
    archiver = ArchiverThread(log.settings, SYSTEM, "w", new_rng(), no_crash)
    archiver.start()
    try:
        wait_until(
            lambda: "pip install" in read_status(log.settings).archive.error, "status says it"
        )
    finally:
        archiver.stop()
    assert log.logged() == list(range(1, 21))


def test_what_is_trimmed_beyond_the_seal_is_told_at_the_next_look(log):
    """G7: an archived and trimmed log raises no alarm; XTRIM past the seal does at one look."""
    log.append(50)
    watch = LogWatch(log.settings, clock := FakeClock())
    run_once(log.settings)
    for _ in range(8):
        watch.poll(log.redis)
        clock.advance(POLL_SECONDS)
    assert [a for a in watch.alarms if a.code == "data_loss"] == []
    log.append(50)
    log.redis.xtrim(log.key, maxlen=30, approximate=False)
    watch.poll(log.redis)
    (alarm,) = [a for a in watch.alarms if a.code == "data_loss"]
    assert "events 51 to 70 are gone" in alarm.text


def test_the_process_behind_archive_run_says_what_it_did(log, spawn):
    """G10: one JSON line with what was sealed, where, and what was in the way."""
    log.append(20)
    child = spawn("-m", "memorybus_workers", "archive", env=environ(log.settings))
    assert child.wait() == 0, child.output()
    said = msgspec.json.decode(child.output().splitlines()[-1])
    assert (said["events"], said["errors"], said["elsewhere"]) == (20, {}, False)


def test_a_stale_archiver_writes_nothing(log):
    """G5: a seal with another epoch than the lane's is refused, and trims nothing."""
    log.append(10)
    lane = log.keys.lane(P, "@archive")
    log.redis.hset(lane, "epoch", 7)
    entry = log.redis.xrange(log.key)[8][0].decode()
    wait_until(
        lambda: read_server_ms(log.redis) > parse_entry_id(entry)[0],
        "its millisecond is over, so it is cold",
    )
    end = Place(entry, 9)
    stale = scripts.seal(owner(log, 6), end.entry, end.n, 0, known=entry)
    with pytest.raises(LeaseLost):
        scripts.run(log.redis, stale)
    assert (log.sealed(), len(log.logged())) == (0, 10)
    current = scripts.seal(owner(log, 7), end.entry, end.n, 0, known=entry)
    scripts.run(log.redis, current)
    assert (log.sealed(), log.logged()) == (9, [10])


def owner(log: SealedLog, epoch: int) -> OwnedLane:
    """Return the archiver's lane under an epoch."""
    return OwnedLane(log.keys, P, ARCHIVE_LANE, epoch)


class LateLeases(Leases):
    """Leases of an archiver that stands still before it takes a lane: the log is wiped then."""

    log: SealedLog

    def acquire(
        self, redis: redis.Redis, provider: str, partition: int, floor: int = 0
    ) -> Lease | None:
        """Wipe the log, begin another one, and take the lane there."""
        self.log.redis.flushall()
        EventLog(self.log.redis, self.log.settings).open()
        self.log.append(3)
        return super().acquire(redis, provider, partition, floor)


def test_an_archivers_knowledge_ends_with_its_log(make_redis, make_settings):
    """G7: the end of a wiped log's archive is not written into the log that follows it."""
    log = SealedLog(make_settings(url=make_redis().url, **QUICK))
    log.grow(97)
    leases = LateLeases(log.settings, SYSTEM, "w")
    leases.log = log
    with closing(connect_redis(log.settings)) as client:
        archiving = make_archiving(log.settings, SYSTEM, leases, client)
        with pytest.raises(LogReplaced):
            archiving.run(force=True)
        assert log.sealed() == 0
        assert (
            make_archiving(log.settings, SYSTEM, Leases(log.settings, SYSTEM, "v"), client).run(
                force=True
            )
            == 3
        )
    assert log.archived() == [1, 2, 3]
    log.assert_whole()
    log.redis.close()
