"""Redis came back from an older copy, on a clock behind the one that sealed last (G7)."""

import time
from collections.abc import Iterator

import pytest
from helpers.archive.sealed_log import SealedLog, may_stay, refused
from helpers.processes.waiting import wait_until
from memorybus.archive.agreement import ArchiveComparer
from memorybus.archive.archive import Archive
from memorybus.archive.format.parquet import RawEntry
from memorybus.archive.rows import SealedRow
from memorybus.clock import SYSTEM
from memorybus.ids import new_rng
from memorybus.log.entry import Place
from memorybus.redis import scripts
from memorybus.redis.keys import ARCHIVE_LANE
from memorybus.redis.scripts import OwnedLane
from memorybus.testing import no_crash
from memorybus_workers.archiving.archiver import ArchiverThread, run_once

P = SealedLog.PARTITION
AHEAD_MS = 600_000
"""By how much the clock of the server that sealed last was ahead."""


@pytest.fixture(name="log")
def _log(known_log: SealedLog) -> SealedLog:
    return known_log


def later(log: SealedLog, count: int) -> list[RawEntry]:
    """Seal events that a server whose clock is ahead took, and this Redis does not have."""
    (_, fields), *_ = log.redis.xrange(log.key)
    base = int(time.time() * 1_000) + AHEAD_MS
    first = log.archived()[-1] + 1
    rows = [
        RawEntry(f"{base + n}-0", first + n, [b"n", b"%d" % (first + n), b"e", fields[b"e"]])
        for n in range(count)
    ]
    log.archive().publish(P, rows)
    return rows


def test_what_came_after_a_clock_went_back_is_not_trimmed(log):
    """G7: a Redis that came back older, on a slow clock, loses nothing that it took since."""
    later(log, 50)
    log.append(20, user="ours")  # 51 to 70 again, at places before those that are sealed
    said = refused(log)
    assert "continues to event 100, but does not have event 51" in said
    assert log.logged() == list(range(50, 71))
    may_stay(log)  # as after a restart, which changes the server's run id
    assert refused(log) == ""
    log.append(3, user="ours")
    assert log.logged() == [50, *range(101, 124)]
    assert run_once(log.settings).errors == {}
    assert log.sealed() == 100  # for this clock what follows is too young
    assert log.logged() == list(range(101, 124))
    end = log.archive().end(P)
    assert end is not None
    assert log.redis.xlen(log.key) == len(log.redis.xrange(log.key, f"({end.entry}"))


def test_what_comes_in_once_the_end_is_noted_lies_behind_it(log):
    """G7: a slow clock gives no place before what is sealed, once Redis knows how far that is."""
    last = later(log, 50)[-1]
    assert run_once(log.settings).errors == {}
    assert log.sealed() == 100
    log.append(5)
    assert log.logged()[-5:] == list(range(101, 106))
    (entry, _) = log.redis.xrange(log.key)[-5]
    assert entry.decode() == f"{last.entry.split('-')[0]}-1"
    assert run_once(log.settings).errors == {}
    assert log.logged()[-5:] == list(range(101, 106))


def test_what_comes_in_while_it_is_compared_is_not_trimmed(log):
    """G7: the script trims nothing up to an end before which the log has what nobody compared."""
    rows = later(log, 50)
    end = Place(rows[-1].entry, 100)
    noted = Place(log.redis.hget(log.state, "sealed_entry").decode(), 50)
    comparing = ArchiveComparer(log.redis, log.keys, log.archive())
    known = comparing.compare(P, noted, end).upto
    log.append(1)
    log.redis.hset(log.keys.lane(P, "@archive"), "epoch", 7)
    owner = OwnedLane(log.keys, P, ARCHIVE_LANE, 7)
    call = scripts.seal(owner, end.entry, end.n, 0, known=known)
    assert scripts.run(log.redis, call) == scripts.UnknownEntry()
    assert (log.sealed(), log.logged()) == (50, [50, 51])


def test_only_the_rows_from_the_logs_first_entry_on_are_compared(log, monkeypatch):
    """G7, G10: comparing costs what the log has, however much was sealed before that."""
    end = Place(later(log, 50)[-1].entry, 100)
    run_once(log.settings)
    log.redis.delete(log.key)
    log.append(5, user="ours")
    asked, places = list[str](), Archive.places

    def noted(archive: Archive, partition: int, first: str, last: str) -> Iterator[SealedRow]:
        asked.append(first)
        return places(archive, partition, first, last)

    monkeypatch.setattr(Archive, "places", noted)
    found = ArchiveComparer(log.redis, log.keys, log.archive()).compare(P, end, end)
    assert found.lacking is not None
    assert asked == [found.lacking.entry]


def test_a_stream_that_begins_anew_on_a_slow_clock_is_not_trimmed(log):
    """G7: events at places before what is noted are told by their numbers, and move behind it."""
    later(log, 10)
    run_once(log.settings)
    log.redis.delete(log.key)
    log.append(5, user="ours")
    assert log.logged() == list(range(61, 66))
    end = log.archive().end(P)
    assert end is not None
    archiver = ArchiverThread(log.settings, SYSTEM, "w", new_rng(), no_crash)
    archiver.start()
    try:
        wait_until(
            lambda: log.redis.xlen(log.key) == 5 == len(log.redis.xrange(log.key, f"({end.entry}")),
            "a worker moves them by itself",
        )
    finally:
        archiver.stop()
    assert run_once(log.settings).errors == {}
    assert log.logged() == list(range(61, 66))
