"""Entries of others in a log's stream: they keep nothing from being sealed, and shift no number."""

import pytest
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.processes.waiting import wait_until
from helpers.redis.log import read_health
from memorybus.clock import SYSTEM
from memorybus.ids import new_rng
from memorybus.testing import no_crash
from memorybus_workers.archiving.archiver import ArchiverThread, run_once
from memorybus_workers.archiving.renumbering import Renumbering

P = SealedLog.PARTITION


def write_foreign(log: SealedLog, count: int = 1, **fields: str) -> None:
    """Write what is not ours."""
    for _ in range(count):
        log.redis.xadd(log.key, fields or {"hello": "world"})


def numbers(log: SealedLog) -> list[int]:
    """Return the numbers of our entries that are in the stream."""
    return [int(f[b"n"]) for _, f in log.redis.xrange(log.key) if b"n" in f]


@pytest.mark.parametrize("count", [17, 1_200])
def test_a_partition_that_begins_with_foreign_entries_is_sealed_by_itself(
    log, make_settings, count
):
    """G7, G10: however many entries of others are in front, a worker seals what is ours."""
    settings = make_settings(**QUICK | {"segment_events": 500})
    write_foreign(log, count)
    log.append(200)
    archiver = ArchiverThread(settings, SYSTEM, "w", new_rng(), no_crash)
    archiver.start()
    try:
        wait_until(lambda: log.sealed() == 200, "all is sealed")
    finally:
        archiver.stop()
    assert log.archived() == [*range(1, 201)]
    assert log.logged() == [200]


def test_pages_of_foreign_entries_take_no_number(log, make_settings):
    """G3, G7: where whole pages are others', the next event has the next number."""
    settings = make_settings(**QUICK | {"segment_events": 5})
    log.append(3)
    write_foreign(log, 12)
    assert run_once(settings).errors == {}
    assert (log.sealed(), log.head()) == (3, 3)
    log.append(2)
    write_foreign(log, 10)
    log.append(1)
    done = run_once(settings)
    assert (done.errors, log.sealed()) == ({}, 6)
    assert numbers(log) == [6]
    assert log.archived() == [1, 2, 3, 4, 5, 6]
    assert run_once(settings).events == 0
    assert read_health(settings).continuity.gaps == []


def test_a_number_makes_a_foreign_entry_none_of_ours(log):
    """G6, G7: an entry of another form is not ours, whatever it has: nothing is renumbered."""
    log.grow()
    log.append(3)
    write_foreign(log, n="7", note="hello")
    log.append(2)
    before = log.redis.xrange(log.key)
    end = log.archive().end(P)
    assert end is not None
    assert Renumbering(log.redis, log.keys).find_behind(P, end) is None
    assert log.redis.xrange(log.key) == before
    health = read_health(log.settings)
    assert health.continuity.gaps == []
    assert [one.code for one in health.alarms if one.severity == "critical"] == []
    assert run_once(log.settings).errors == {}
    assert log.sealed() == 55
    assert len(log.archived()) == 55
