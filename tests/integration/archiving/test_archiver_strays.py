"""Entries of others in a log's stream: they keep nothing from being sealed, and shift no number."""

import pytest
from conftest import MakeSettings
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.processes.waiting import wait_until
from memorybus.archive.format import parquet
from memorybus.archive.renumbering import Renumbering
from memorybus.clock import SYSTEM
from memorybus.health.log_health import read_health
from memorybus.ids import new_rng
from memorybus.testing import FakeClock, no_crash
from memorybus_workers.archiving.archiver import Archiver, run_once

P = SealedLog.PARTITION


def stray(log: SealedLog, count: int = 1, **fields: str) -> None:
    """Write what is not ours."""
    for _ in range(count):
        log.redis.xadd(log.key, fields or {"hello": "world"})  # type: ignore[arg-type]


def numbers(log: SealedLog) -> list[int]:
    """Return the numbers of our entries that are in the stream."""
    return [int(f[b"n"]) for _, f in log.redis.xrange(log.key) if b"n" in f]  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [17, 1_200])
def test_a_partition_that_begins_with_strays_is_sealed_by_itself(
    log: SealedLog, make_settings: MakeSettings, count: int
) -> None:
    """G7, G10: however many entries of others are in front, a worker seals what is ours."""
    settings = make_settings(**QUICK | {"segment_events": 500})
    stray(log, count)
    log.append(200)
    archiver = Archiver(settings, SYSTEM, "w", new_rng(), no_crash)
    archiver.start()
    try:
        wait_until(lambda: log.sealed() == 200, "all is sealed")
    finally:
        archiver.stop()
    assert len(log.archived()) == 200 + count
    assert log.logged() == [200]


def test_a_segment_of_strays_takes_no_number(log: SealedLog, make_settings: MakeSettings) -> None:
    """G3, G7: where a whole segment is others', the next event has the next number."""
    settings = make_settings(**QUICK | {"segment_events": 5})
    log.append(3)
    stray(log, 12)
    assert run_once(settings).errors == {}
    assert (log.sealed(), log.head()) == (3, 3)
    log.append(2)
    stray(log, 10)
    log.append(1)
    done = run_once(settings)
    assert (done.errors, log.sealed()) == ({}, 6)
    assert numbers(log) == [6]
    found = log.archived()
    assert list(dict.fromkeys(found)) == [1, 2, 3, 4, 5, 6]
    assert found == sorted(found)
    assert len(found) == 6 + 22
    assert run_once(settings).events == 0
    assert read_health(settings).continuity.gaps == []


def test_a_segment_is_not_cut_behind_a_stray(
    log: SealedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G3, G7: a large entry of others ends no segment: it counts as the number of the next."""
    monkeypatch.setattr(parquet, "SEGMENT_BYTES", 10_000)
    log.append(3)
    stray(log, hello="world" * 4_000)
    log.append(3)
    assert run_once(log.settings).errors == {}
    assert log.sealed() == 6
    assert [one.last.n for one in log.archive().segments(P)] == [4, 6]


def test_a_stray_that_carries_a_number_is_a_stray(log: SealedLog) -> None:
    """G6, G7: an entry of another form is not ours, whatever it has: nothing is renumbered."""
    log.grow()
    log.append(3)
    stray(log, n="7", note="hello")
    log.append(2)
    before = log.redis.xrange(log.key)
    assert Renumbering(log.redis, log.keys, log.archive(), FakeClock()).find(P) is None
    assert log.redis.xrange(log.key) == before
    health = read_health(log.settings)
    assert health.continuity.gaps == []
    assert [one.code for one in health.alarms if one.severity == "critical"] == []
    assert run_once(log.settings).errors == {}
    assert log.sealed() == 55
    assert len(log.archived()) == 56


def test_strays_in_front_hide_nothing_that_the_log_still_has(
    log: SealedLog, make_settings: MakeSettings
) -> None:
    """G7: an older archive goes on where it ends, though the log begins with entries of others."""
    settings = make_settings(**QUICK | {"hot_window": 3600.0, "segment_events": 3_000})
    stray(log, 1_200)
    log.append(20)
    run_once(settings)
    log.append(20)
    run_once(settings)
    max(settings.data_dir.glob("archive/*/*/p01/manifest-*")).unlink()
    done = run_once(settings)
    assert (done.errors, done.events) == ({}, 20)
    assert log.sealed() == 40
