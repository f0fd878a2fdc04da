"""What is kept no longer goes, however long the look takes in which that is decided (G10)."""

import json

import pytest
from helpers.archive.archives import LOG, entries
from helpers.archive.sealed_log import SealedLog
from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import NO_RETENTION_MARK, RetentionMark, render
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.tombstones import Tombstone
from memorybus.clock import SYSTEM
from memorybus.log.entry import parse_entry_id
from memorybus.query.query import EVERYTHING, Query
from memorybus.registry.roster import worker_id
from memorybus.testing import FakeClock
from memorybus_workers.archiving.archiver import make_archiving, run_once
from memorybus_workers.archiving.compactor import Compactor
from memorybus_workers.archiving.retention import DAY_MS, Policy, ages_of
from memorybus_workers.lanes.leases import Leases

P = SealedLog.PARTITION
EVE = Query(users=("eve",))


def kept(log: SealedLog) -> int:
    """Return how many rows have their envelope."""
    return sum(one.kept for one in log.archive().segments(P))


def test_what_is_forgotten_while_segments_are_written_goes_too(log):
    """G10: a tombstone that comes after the policy was read is obeyed at the next look."""
    log.append(60)
    log.append(10, user="eve")
    log.append(40)
    told: list[str] = []

    def forget(name: str) -> None:
        if name == "archive.written" and not told:
            told.append(name)
            log.archive().forget(Tombstone(id="t", query=EVE, at=SYSTEM.now_ms()))

    leases = Leases(log.settings, SYSTEM, worker_id(1, "m"))
    leases.start()
    try:
        make_archiving(log.settings, SYSTEM, leases, log.redis, patience=0.0, crash=forget).run(
            force=True
        )
    finally:
        leases.stop()
    assert (told, kept(log)) == (["archive.written"], 110)
    run_once(log.settings)
    assert kept(log) == 100


@pytest.mark.parametrize("at", [0, 1, 4_000_000_000_000])
def test_a_tombstone_counts_whatever_clock_dated_it(log, at):
    """G10: without a time, or from a clock that is wrong, it takes the bytes out, once."""
    log.append(20, user="eve")
    log.grow(20)
    log.archive().forget(Tombstone(id="t", query=EVE, at=at))
    run_once(log.settings)
    assert kept(log) == 20
    sums = [one.sha256 for one in log.archive().segments(P)]
    run_once(log.settings)
    assert [one.sha256 for one in log.archive().segments(P)] == sums
    log.archive().forget(Tombstone(id="u", query=Query(users=("ann",)), at=at))
    run_once(log.settings)
    assert kept(log) == 0


def test_what_grows_too_old_while_segments_are_written_goes_too(tmp_path, make_settings):
    """G10: ages count as of the look that decided, not as of when the segment was written."""
    rows = entries(20)
    last, _ = parse_entry_id(rows[-1].entry)
    clock = FakeClock(last + DAY_MS + 9 * 60_000)  # ten minutes into the look
    archive = Archive(LocalObjects(tmp_path), "t", LOG, clock=clock)
    archive.publish(0, rows[:10])
    archive.publish(0, rows[10:])
    policy = Policy({"default": 86_400.0})
    compactor = Compactor(make_settings(segment_events=10_000))
    assert compactor.work(archive, 0, policy, last + DAY_MS - 60_000) == 2
    assert sum(one.kept for one in archive.segments(0)) > 0
    assert compactor.work(archive, 0, policy, last + 2 * DAY_MS) == 1
    assert sum(one.kept for one in archive.segments(0)) == 0


def test_a_copy_of_a_segment_is_as_old_as_what_was_decided(tmp_path):
    """G10: an export does not begin the retention of its rows anew."""
    archive = Archive(LocalObjects(tmp_path / "a"), "t", LOG, clock=FakeClock(77_000))
    first = archive.publish(0, entries(5), None, RetentionMark(66_000, "mark"))
    second = archive.publish(0, entries(5, first=6))
    copy = Archive(LocalObjects(tmp_path / "b"), "t", LOG, clock=FakeClock(99_000))
    found = [copy.copy(archive, one, EVERYTHING) for one in (first, second)]
    assert [ages_of(one).decided_at for one in found] == [66_000, 77_000]
    assert [ages_of(one).tombstones for one in found] == ["", ""]


def test_a_segment_of_an_earlier_release_counts_from_when_it_was_made(tmp_path):
    """G10: what does not say as of when it was decided is looked through as before."""
    archive = Archive(LocalObjects(tmp_path), "t", LOG, clock=FakeClock(77_000))
    segment = archive.publish(0, entries(5))
    text = render(segment.of, 1, [segment], 1).splitlines()[0]
    assert json.loads(text)["judged"] == {"at": 0, "tombstones": ""}
    assert segment.judged == NO_RETENTION_MARK
    assert (ages_of(segment).decided_at, ages_of(segment).tombstones) == (77_000, "")
