"""An archive that goes on with what this log does not have: a clone's, or its own later past."""

import shutil
from contextlib import closing
from typing import Any

import msgspec
import pytest
from helpers.archive.past import read_all
from helpers.archive.sealed_log import QUICK, SealedLog, may_stay, newest_manifest, refused
from helpers.making import MakeServer
from helpers.processes.waiting import wait_until
from helpers.redis.log import read_health
from memorybus.archive.format.parquet import RawEntry
from memorybus.clock import SYSTEM
from memorybus.history.history import History
from memorybus.ids import new_rng
from memorybus.log.entry import parse_entry_id
from memorybus.redis.facts import read_server_ms
from memorybus.testing import no_crash
from memorybus_workers.archiving.archiver import ArchiverThread, run_once
from memorybus_workers.archiving.sealer import OwnedPartition, Sealer

P = SealedLog.PARTITION


@pytest.fixture(name="log")
def _log(known_log: SealedLog) -> SealedLog:
    return known_log


def clone_of(log: SealedLog, make_redis: MakeServer) -> SealedLog:
    """Copy the log's Redis to another server, with the same settings but its URL."""
    server = make_redis()
    other, ours = server.client(), log.redis
    for key in ours.keys(f"{log.settings.namespace}*"):
        other.restore(key, 0, ours.dump(key))
    other.close()
    clone = SealedLog(msgspec.structs.replace(log.settings, url=server.url))
    clone._sequence = log._sequence
    return clone


def append_later(log: SealedLog, than: SealedLog, count: int, user: str) -> None:
    """Append turns whose places lie behind all that another server has: in a later millisecond."""
    (last,) = than.redis.xrevrange(than.key, count=1)
    wait_until(
        lambda: read_server_ms(log.redis) > parse_entry_id(last[0].decode())[0],
        "its millisecond is over",
    )
    log.append(count, user=user)


def events_of_people(log: SealedLog) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in log.archive().scan(P):
        turn = int(one.envelope.event.user.split()[1])
        found.setdefault(one.envelope.scope.user, []).append(turn)
    return found


def test_what_a_clone_sealed_is_no_leave_to_trim(log, make_redis):
    """G7: where a copy of this Redis sealed other events, nothing is trimmed, noted or sealed."""
    clone = clone_of(log, make_redis)
    log.append(20, user="ours")
    append_later(clone, log, 30, "clone")
    assert run_once(clone.settings).events == 30
    before = log.logged()
    assert "continues to event 80, but does not have event 51" in refused(log)
    assert (log.logged(), log.sealed()) == (before, 50)
    may_stay(log)
    assert refused(log) == ""
    assert log.logged() == [50, *range(81, 101)]
    assert run_once(log.settings).errors == {}
    assert events_of_people(log)["ours"] == list(range(51, 71))
    assert log.archived() == list(range(1, 101))
    log.assert_whole()
    clone.redis.close()


def test_what_a_clone_sealed_can_be_taken_out(log, make_redis):
    """G7: without the manifest that the copy wrote, this log's own events are sealed."""
    clone = clone_of(log, make_redis)
    log.append(20, user="ours")
    append_later(clone, log, 30, "clone")
    run_once(clone.settings)
    assert refused(log)
    newest_manifest(log.settings).unlink()
    assert run_once(log.settings).errors == {}
    assert list(events_of_people(log)) == ["ann", "ours"]
    log.assert_whole()
    assert refused(clone)
    clone.redis.close()


def test_a_clone_that_seals_in_between_is_noticed(log, make_redis, monkeypatch):
    """G7: what was read for a segment is not taken for sealed because another's ends behind it."""
    clone = clone_of(log, make_redis)
    log.append(20, user="ours")
    append_later(clone, log, 30, "clone")
    check = Sealer._check_ownership

    def late(self: Sealer, owned: OwnedPartition) -> None:
        monkeypatch.setattr(Sealer, "_check_ownership", check)
        check(self, owned)
        run_once(clone.settings)

    monkeypatch.setattr(Sealer, "_check_ownership", late)
    assert run_once(log.settings).events == 0
    assert (log.logged()[-20:], log.sealed()) == (list(range(51, 71)), 50)
    assert "does not have event 51" in refused(log)
    assert log.logged()[-20:] == list(range(51, 71))
    clone.redis.close()


def test_a_worker_tells_of_it(log, make_redis):
    """G7: an archive with another log's events is an alarm, for as long as it lasts."""
    clone = clone_of(log, make_redis)
    log.append(5, user="ours")
    append_later(clone, log, 30, "clone")
    run_once(clone.settings)
    archiver = ArchiverThread(log.settings, SYSTEM, "w", new_rng(), no_crash)
    archiver.start()
    try:
        wait_until(
            lambda: [
                one
                for one in read_health(log.settings).alarms
                if (one.code, one.severity) == ("archive", "critical")
                and "does not have event 51" in one.text
            ],
            "it is told",
        )
    finally:
        archiver.stop()
    assert log.logged() == list(range(50, 56))
    clone.redis.close()


def test_a_lane_reads_nothing_that_only_a_clone_sealed(log, make_redis):
    """G3: what lies in the archive behind what this log knows to be sealed is not its history."""
    clone = clone_of(log, make_redis)
    clone.append(30, user="clone")  # before ours: their places lie between our 50 and 51
    append_later(log, clone, 20, "ours")
    log.redis.xtrim(log.key, maxlen=20, approximate=False)
    run_once(clone.settings)
    with closing(History.from_settings(log.redis, log.settings)) as history:
        events = read_all(history, 7, P)
    found = [(event.position.n, event.envelope.scope.user) for event in events]
    assert found == [(n, "ann" if n <= 50 else "ours") for n in range(1, 71)]
    clone.redis.close()


@pytest.mark.parametrize("missing", [51, 60, 69])
def test_every_entry_is_compared(log, make_settings, missing):
    """G7: one event that the archive lacks among those it has is enough."""
    log.append(20)
    entries: Any = log.redis.xrange(log.key)
    rows = [
        RawEntry(entry.decode(), int(f[b"n"]), [p for pair in f.items() for p in pair])
        for entry, f in entries
        if int(f[b"n"]) > 50 and int(f[b"n"]) != missing
    ]
    log.archive().publish(P, rows)
    assert f"does not have event {missing}" in refused(log)
    assert log.logged() == list(range(50, 71))


def test_another_event_under_the_same_number_and_place_is_another(log):
    """G7: two logs may take an event in the same millisecond: it is told by its id."""
    log.append(2)
    entries: Any = log.redis.xrange(log.key)
    body = entries[0][1][b"e"]
    rows = [
        RawEntry(entry.decode(), n, [b"n", b"%d" % n, b"e", body])
        for n, (entry, _) in enumerate(entries[1:], 51)
    ]
    log.archive().publish(P, rows)
    assert "does not have event 51" in refused(log)


def test_a_redis_that_forgot_what_is_sealed_is_compared_from_its_beginning(log, make_settings):
    """G7: what is noted counts only where the archive has it; entries of others are passed over."""
    settings = make_settings(**QUICK | {"hot_window": 3600.0})
    log.append(5)
    log.redis.xadd(log.key, {"hello": "world"})
    log.append(5)
    run_once(settings)
    log.redis.hset(log.state, mapping={"sealed": 40, "sealed_entry": "1-1"})
    assert run_once(settings).errors == {}
    assert log.sealed() == 60
    log.redis.hdel(log.state, "sealed", "sealed_entry")
    assert run_once(settings).errors == {}
    assert log.sealed() == 60


def test_what_was_sealed_elsewhere_is_not_trimmed(
    redis_client, make_redis, make_settings, tmp_path
):
    """G7: what this log knows to be sealed counts for the archive that has it, and for no other."""
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    log = SealedLog(make_settings(**QUICK | {"hot_window": 3600.0, "archive": ours}))
    log.grow(30)
    shutil.copytree(ours, theirs)
    clone = clone_of(log, make_redis)
    clone.settings = msgspec.structs.replace(clone.settings, archive=theirs)
    log.append(20, user="ours")
    run_once(log.settings)
    clone.append(50, user="clone")
    run_once(clone.settings)
    log.settings = msgspec.structs.replace(log.settings, archive=theirs, hot_window=0.0)
    assert "does not have event 31" in refused(log)
    assert log.logged() == list(range(1, 51))
    clone.redis.close()
    log.redis.close()
