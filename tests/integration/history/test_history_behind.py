"""G7: an archive that ends before what was sealed, or lost a line, is never taken for the whole."""

from collections.abc import Callable

import pytest
from helpers.archive.archives import archive_in
from helpers.archive.archives import sealed as sealed_in
from helpers.archive.sealed_log import QUICK, SealedLog, newest_manifest
from helpers.processes.waiting import wait_until
from memorybus.archive.tombstones import DamageHandler
from memorybus.clock import SYSTEM
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable
from memorybus.history.history import History
from memorybus.redis.scripts import OwnedLane
from memorybus_workers.lanes.start_point import StartFinder
from memorybus_workers.lanes.window import StartPoint

P = SealedLog.PARTITION


@pytest.fixture(name="log")
def _log(log: SealedLog) -> SealedLog:
    """Return a log of which 1 to 50, then 51 to 100 were sealed, and all but 100 trimmed."""
    for _ in range(2):
        log.grow()
    return log


def of(log: SealedLog) -> History:
    """Return the history as whoever opens it now."""
    return History.from_settings(log.redis, log.settings)


def entry_of(log: SealedLog, n: int) -> str:
    """Return the entry of a sealed number."""
    return next(e.position.entry for e in log.archive().scan(P) if e.position.n == n)


Asked = Callable[[History, str, int], object]
ASKED: dict[str, Asked] = {
    "backward": lambda history, _, __: list(history.scan_backward()),
    "the newest few": lambda history, _, __: [
        next(e) for e in [history.scan_backward()] for _ in "ab"
    ],
    "scan": lambda history, _, __: list(history.scan()),
    "has": lambda history, entry, _: history.has(P, entry),
    "before": lambda history, entry, _: history.last_before(P, entry),
    "places": lambda history, _, ms: history.places(ms, inclusive=False),
    "place": lambda history, _, __: history.place(P, 70),
}


@pytest.mark.parametrize("ask", ASKED)
def test_nothing_is_answered_of_what_the_archive_lacks(log, ask):
    """G7: whoever needs what was sealed, and is not there, hears so and gets no other answer."""
    entry, last = entry_of(log, 70), entry_of(log, 100)
    newest_manifest(log.settings).unlink()
    with pytest.raises(ArchiveUnavailable, match=r"events up to .* ends at 50"):
        ASKED[ask](of(log), entry, int(last.split("-")[0]))


def test_the_end_is_not_told_wrongly(log):
    """G7: where the log is gone too, nobody knows where the history ends."""
    newest_manifest(log.settings).unlink()
    log.redis.delete(log.key)
    with pytest.raises(ArchiveUnavailable, match="up to 100 were sealed"):
        of(log).last_before(P, f"{2**62}-0")


def test_a_listing_tells_it_and_shows_the_rest(log):
    """G7: who listens to damage hears that a part is missing, both ways, and gets the rest."""
    newest_manifest(log.settings).unlink()
    forward, backward = list[str](), list[str]()
    found = [e.position.n for e in of(log).scan(damage=DamageHandler(forward))]
    assert found == [*range(1, 51), 100]
    assert [e.position.n for e in of(log).scan_backward(damage=DamageHandler(backward))] == found[
        ::-1
    ]
    for told in (forward, backward):
        assert ["up to 99 were sealed" in why for why in told] == [True]


def test_a_checkpoint_that_is_not_there_halts_its_lane(log):
    """G4, G7: a lane does not step back because the archive was read without its end."""
    entry = entry_of(log, 70)
    newest_manifest(log.settings).unlink()
    lane = OwnedLane(log.keys, P, "rec", epoch=1, entry=entry, n=70, head=100)
    with pytest.raises(ArchiveUnavailable):
        StartFinder(of(log), lane).find(StartPoint(entry, 70))


def test_damage_of_one_partition_hides_no_other(redis_client, make_settings):
    """G7: what one partition's archive lacks is told, whatever is damaged in another's."""

    class Zero(SealedLog):
        PARTITION = 0

    log = SealedLog(make_settings(**QUICK))
    zero = Zero(log.settings)
    for _ in range(3):
        zero.append(50)
        log.grow()
    newest_manifest(log.settings).unlink()
    segment = sorted(log.settings.data_dir.glob("archive/*/*/p00/segments/*"))[1]
    segment.write_bytes(b"x" * segment.stat().st_size)
    told: list[str] = []
    list(of(log).scan(damage=DamageHandler(told)))
    assert sum("partition p01" in why for why in told) == 1
    assert sum(segment.name in why for why in told) == 1


def test_a_listing_goes_on_where_the_log_begins_with_a_stranger(log):
    """G7: damage is told and the rest is read, also where the log begins with another's entry."""
    last = log.redis.xrange(log.key)[0][0]
    log.redis.xadd(log.key, {"x": "y"})
    log.append(1)
    log.redis.xdel(log.key, last)
    segment = min(log.settings.data_dir.glob("archive/*/*/p01/segments/*"))
    segment.write_bytes(b"x" * segment.stat().st_size)
    told: list[str] = []
    found = [event.position.n for event in of(log).scan(damage=DamageHandler(told))]
    assert found == [*range(51, 102)]
    assert [segment.name in why for why in told] == [True]


def test_a_lost_line_of_the_manifest_is_no_end(tmp_path):
    """G7: what stands before a place is not told across a line that the manifest lost."""
    events = sealed_in(tmp_path, 4, 20)
    newest = max(tmp_path.glob("p00/manifest-*"))
    lines = newest.read_bytes().splitlines(keepends=True)
    newest.write_bytes(b"".join([lines[0], b"x\n", *lines[2:]]))
    entries = [event.position.entry for event in events]
    for n in (22, 30, 41, 42, 80):
        with pytest.raises(ArchiveDamaged, match=r"manifest is damaged: .*, line 2: "):
            archive_in(tmp_path).last_before(0, entries[n - 1])
    with pytest.raises(ArchiveDamaged, match="manifest is damaged"):
        archive_in(tmp_path).has(0, entries[29])
    for n in (2, 20):
        found = archive_in(tmp_path).last_before(0, entries[n - 1])
        assert found is not None
        assert found.position.n == n - 1
    assert archive_in(tmp_path).has(0, entries[19])


def test_moments_are_told_across_the_seam(redis_client, make_settings):
    """G8: a time in the sealed past is its number, and with its manifest lost it is none."""
    log = SealedLog(make_settings(**QUICK))
    log.grow(80)
    then = int(entry_of(log, 80).split("-")[0])
    wait_until(lambda: SYSTEM.now_ms() > then, "the next event has a later time")
    log.grow(20)
    assert of(log).places(then)[P] == 80
    newest_manifest(log.settings).unlink()
    with pytest.raises(ArchiveUnavailable):
        of(log).places(then)
