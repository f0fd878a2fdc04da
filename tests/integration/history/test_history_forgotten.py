"""What nobody shall read any more is shown by no reader, wherever it lies, and at once."""

from pathlib import Path

import pytest
from helpers.archive.archives import LOG, archive_in
from helpers.archive.archives import sealed as sealed_in
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.making import MakeSettings
from memorybus.archive.archive import Archive
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.objects.store import StoredFile
from memorybus.archive.tombstones import DamageHandler, Tombstone
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable
from memorybus.history.forgotten import TOMBSTONE_AGE
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import EventLog
from memorybus.query.query import Query
from memorybus.testing import FakeClock
from memorybus_workers.archiving.archiver import run_once

P = SealedLog.PARTITION
EVE = Tombstone(id="t", query=Query(users=("eve",)), reason="she asked")


class Away(LocalObjects):
    """A place that answers nobody while `is_away`."""

    is_away = False
    asked = 0

    def list(self, folder: str) -> list[StoredFile]:
        self.asked += 1
        if self.is_away:
            raise ArchiveUnavailable("the store does not answer")
        return super().list(folder)


def log_of(make_settings: MakeSettings, **more: object) -> SealedLog:
    """Return a log with 30 of ann's events, then 10 of eve's."""
    log = SealedLog(make_settings(**QUICK | {"hot_window": 3600.0} | more))
    log.append(30)
    log.append(10, user="eve")
    return log


def history_of(log: SealedLog, clock: FakeClock) -> tuple[History, Away]:
    """Return a history with its own time, and the place of its archive."""
    place = Away(Path(log.archive().where))
    archive = Archive(place, log.settings.namespace, place.where.rpartition("/")[2], clock=clock)
    return History(EventLog(log.redis, log.settings), archive, clock=clock), place


def people(events: list[LoggedEvent]) -> set[str]:
    return {event.envelope.scope.user for event in events}


@pytest.mark.parametrize("sealed", [False, True])
def test_the_log_hides_what_is_forgotten(redis_client, make_settings, sealed):
    """What a tombstone hides is shown by no listing, sealed, in the log only, or both."""
    log = log_of(make_settings, **{} if sealed else {"seal_after": 3600.0})
    run_once(log.settings)
    assert log.sealed() == (40 if sealed else 0)
    assert len(log.logged()) == 40
    log.archive().forget(EVE)
    for found in (History.scan, History.scan_backward):
        shown = list(found(History.from_settings(log.redis, log.settings)))
        assert (len(shown), people(shown)) == (30, {"ann"})


def test_nothing_is_shown_while_nobody_knows_what_is_hidden(redis_client, make_settings):
    """A tombstone that cannot be read hides everything: it is told, or raised."""
    log = log_of(make_settings)
    log.archive().forget(EVE)
    path = next(log.settings.data_dir.rglob("t.json"))
    path.write_bytes(b"{")
    for read in (History.scan, History.scan_backward):
        told: list[str] = []
        history = History.from_settings(log.redis, log.settings)
        assert not list(read(history, damage=DamageHandler(told)))
        assert [path.name in why for why in told] == [True]
        with pytest.raises(ArchiveDamaged, match=path.name):
            list(read(history))


def test_an_outage_stops_no_reader_of_the_log(redis_client, make_settings):
    """G7: a lane that once needed the archive goes on, and what it knew to be hidden stays so."""
    log = SealedLog(make_settings(**QUICK))
    log.grow()
    log.archive().forget(EVE)
    clock = FakeClock()
    history, place = history_of(log, clock)
    after, n = "0-0", 0
    while page := history.read(P, after, 200, after_n=n).events:
        after, n = page[-1].position.entry, page[-1].position.n
    place.is_away = True
    clock.advance(TOMBSTONE_AGE + 1)
    log.append(5)
    log.append(5, user="eve")
    place.asked = 0
    for _ in range(3):
        page = history.read(P, after, 200, after_n=n).events
        assert [bool(event.envelope.key) for event in page] == [True] * 5 + [False] * 5
    assert place.asked == 1
    with pytest.raises(ArchiveUnavailable):
        list(history.scan_backward())


def test_a_long_listing_obeys_what_comes_meanwhile(redis_client, make_settings):
    """A tombstone is obeyed by whoever reads already, as soon as the next page is read."""
    log = SealedLog(make_settings(**QUICK | {"hot_window": 3600.0}))
    for _ in range(30):
        log.append(30)
        log.append(30, user="eve")
    for read in (History.scan, History.scan_backward):
        clock = FakeClock()
        history, _ = history_of(log, clock)
        running = read(history)
        first = [next(running) for _ in range(100)]
        assert people(first) == {"ann", "eve"}
        log.archive().forget(EVE)
        clock.advance(TOMBSTONE_AGE)
        assert people(list(running)[500:]) == {"ann"}
        next(log.settings.data_dir.rglob("t.json")).unlink()


@pytest.mark.parametrize("backward", [False, True])
def test_a_long_reading_of_the_archive_obeys_what_comes_meanwhile(tmp_path, backward):
    """A tombstone is obeyed by whoever reads the archive already, from the next segment on."""
    sealed_in(tmp_path, 3, 20)
    clock = FakeClock()
    archive = Archive(LocalObjects(tmp_path), "t", LOG, clock=clock)
    running = archive.read_backward(0, f"{2**62}-0") if backward else archive.scan(0)
    next(running)
    archive_in(tmp_path).forget(Tombstone(id="t", query=Query(users=("u-1",)), at=1))
    clock.advance(TOMBSTONE_AGE)
    assert "u-1" not in people(list(running)[19:])
