"""The archive as a whole: seal, read, compact, forget; of two writers one wins."""

import pytest
from helpers.archive.archives import LOG, archive_in, as_logged, entries, entry, pages, raw, sealed
from helpers.processes.disks import MIB
from memorybus.archive.archive import Archive
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.tombstones import Tombstone
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveTaken, ArchiveUnavailable, ConfigError
from memorybus.events import MemoryWritten, Omitted, TurnStarted
from memorybus.log.entry import OMITTED_ENVELOPES
from memorybus.query.query import Query, row_of
from memorybus.query.ranges import NumberRange, Plan
from memorybus.testing import FakeClock


def test_what_is_sealed_is_read_in_order(tmp_path):
    """G7: pages of the archive join into the log as it was, partition by partition."""
    known = {p: sealed(tmp_path, 3, partition=p) for p in (0, 11)}
    archive = archive_in(tmp_path)
    for partition, events in known.items():
        assert list(pages(archive, partition)) == events
        assert archive.end(partition) is not None
        assert archive.end(partition).n == 60
    assert archive.end(3) is None
    assert archive.read(3) == []


def test_single_places_are_found(tmp_path):
    """A lane asks whether its checkpoint is there, and what came before a place."""
    known, archive = sealed(tmp_path, 3), archive_in(tmp_path)
    for at, event in enumerate(known):
        assert archive.has(0, event.position.entry)
        assert archive.last_before(0, event.position.entry) == (known[at - 1] if at else None)
    assert not archive.has(0, "1760000000000-9")
    assert not archive.has(0, "9999999999999-0")
    assert archive.last_before(0, "9999999999999-0") == known[-1]


def test_sealing_again_adds_nothing(tmp_path):
    """G7: entries that are sealed are passed over; others follow without a gap."""
    archive, rows = archive_in(tmp_path), entries(30)
    first = archive.publish(0, rows[:20])
    assert archive.publish(0, rows[:20]) == first
    assert archive.publish(0, rows[5:]).first.n == 21
    assert list(pages(archive_in(tmp_path))) == as_logged(rows)


@pytest.mark.parametrize("wrong", [[], [entry(2), entry(1)], [entry(1), entry(1)]])
def test_what_is_not_in_order_is_refused(tmp_path, wrong):
    """A mistake of the caller does not reach the archive."""
    with pytest.raises(ValueError, match=r"there is nothing to seal|comes after"):
        archive_in(tmp_path).publish(0, wrong)
    assert archive_in(tmp_path).end(0) is None


def test_only_one_of_two_writers_publishes(tmp_path):
    """G5, G7: a stale writer that sealed the same entries loses at the manifest."""
    rows = entries(40)
    archive_in(tmp_path).publish(0, rows[:10])

    def overtaken(name: str) -> None:
        if name == "archive.verified":
            archive_in(tmp_path).publish(0, rows[:30])

    stale = Archive(LocalObjects(tmp_path), "t", LOG, crash=overtaken)
    with pytest.raises(ArchiveTaken):
        stale.publish(0, rows)
    assert list(pages(archive_in(tmp_path))) == as_logged(rows[:30])
    assert stale.publish(0, rows).first.n == 31


QUERIES = (
    Query(sessions=("s-3",)),
    Query(sessions=("s-3", "s-5"), users=("u-1",)),
    Query(types=("MemoryWritten",)),
    Query(types=("UnknownEvent",)),
    Query(except_users=("u-0",), except_origins=("cli",)),
    Query(except_sessions=("s-1", "s-2")),
    Query(agents=("a",), platforms=("cli",)),
    Query(lineages=("s-1",)),
    Query(ids=(as_logged([entry(33)])[0].envelope.id,)),
)


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_query_selects_by_columns_what_it_would_by_events(tmp_path, query):
    """The archive filters as the query itself would; what is left out keeps its place."""
    rows = [entry(n, MemoryWritten(action="add") if n % 4 == 0 else None) for n in range(1, 100)]
    rows.append(raw(100, b"n", b"100", b"e", b"no envelope"))
    archive = archive_in(tmp_path)
    archive.publish(0, rows[:50])
    archive.publish(0, rows[50:])
    known = as_logged(rows)
    wanted = [one for one in known if query.wants(row_of(one.envelope))]
    assert list(archive.scan(0, Plan(query=query))) == wanted
    found = archive.read(0, count=1_000, plan=Plan(query=query))
    assert [one.position for one in found] == [one.position for one in known]
    assert [one for one in found if one.envelope is not OMITTED_ENVELOPES["filtered"]] == wanted


def test_spans_and_times_select_too(tmp_path):
    """A plan takes numbers from its spans; a scan takes events of a time."""
    known, archive = sealed(tmp_path, 4), archive_in(tmp_path)
    plan = Plan(spans={0: (NumberRange(3, 5), NumberRange(61))})
    assert list(archive.scan(0, plan)) == known[2:5] + known[60:]
    kept = [x for x in archive.read(0, plan=plan) if not isinstance(x.envelope.event, Omitted)]
    assert kept == known[2:5] + known[60:]
    at = known[30].envelope.at
    assert list(archive.scan(0, since=at, until=at + 12)) == known[30:42]
    assert list(archive.scan(0, after=known[44].position.entry)) == known[45:]


def test_one_session_opens_only_its_segments(tmp_path):
    """A session is found without opening the segments that do not hold it."""
    archive, rows = archive_in(tmp_path), []
    for part in range(10):
        some = [entry(n, session=f"only-{part}") for n in range(part * 20 + 1, part * 20 + 21)]
        archive.publish(0, some)
        rows += some
    for segment in archive.segments(0):
        if segment.first.n != 61:
            (tmp_path / "p00" / segment.file).unlink()
    found = list(archive_in(tmp_path).scan(0, Plan(query=Query(sessions=("only-3",)))))
    assert found == as_logged(rows)[60:80]


def test_forgotten_events_are_hidden_at_once(tmp_path):
    """A tombstone hides from every reader what it names, everywhere; the rest stays."""
    known = sealed(tmp_path, 3)
    archive, clock = archive_in(tmp_path), FakeClock()
    elsewhere = Archive(LocalObjects(tmp_path), "t", LOG, clock=clock)
    assert list(pages(elsewhere)) == known
    gone = Tombstone(id="one", query=Query(users=("u-1",)), reason="asked for it")
    assert archive.forget(gone)
    assert not archive.forget(Tombstone(id="one", query=Query(users=("u-2",))))
    assert archive.tombstones() == [gone]
    clock.advance(6.0)
    for reader in (archive, elsewhere, archive_in(tmp_path)):
        found = list(pages(reader))
        assert [one.position for one in found] == [one.position for one in known]
        hidden = [one for one in found if one.envelope is OMITTED_ENVELOPES["forgotten"]]
        assert [one.position.n % 3 for one in hidden] == [1] * 20
        assert list(reader.scan(0)) == [one for one in known if one.envelope.scope.user != "u-1"]
        assert reader.last_before(0, known[1].position.entry) == hidden[0]


def test_small_segments_are_joined(tmp_path):
    """Compaction: neighbours become one; a reader with the old manifest goes on; files go later."""
    known, reader, writer = sealed(tmp_path, 5), archive_in(tmp_path), archive_in(tmp_path)
    assert reader.read(0, count=25) == known[:25]
    old = writer.segments(0)
    joined = writer.replace(0, old[1:4])
    assert (joined.first.n, joined.last.n, joined.count) == (21, 80, 60)
    assert [one.count for one in writer.segments(0)] == [20, 60, 20]
    for segment in old[1:4]:
        (tmp_path / "p00" / segment.file).unlink()
    assert reader.read(0, known[24].position.entry, 100) == known[25:]
    assert list(pages(archive_in(tmp_path))) == known
    with pytest.raises(ArchiveTaken):
        writer.replace(0, old[1:4])


def test_what_is_not_kept_any_more_leaves_its_number(tmp_path):
    """Retention takes the bytes and whose they were out of a segment, not the place."""
    known, archive = sealed(tmp_path, 2), archive_in(tmp_path)
    archive.replace(
        0, archive.segments(0), lambda row, _: "retention" if row.user == "u-2" else None
    )
    found = list(pages(archive_in(tmp_path)))
    assert [one.position for one in found] == [one.position for one in known]
    for old, new in zip(known, found, strict=True):
        gone = old.envelope.scope.user == "u-2"
        assert new == old if not gone else new.envelope is OMITTED_ENVELOPES["retention"]
    (segment,) = archive.segments(0)
    assert segment.kept == 40 - sum(one.envelope.scope.user == "u-2" for one in known)
    archive.replace(0, archive.segments(0), None)
    assert list(pages(archive_in(tmp_path))) == found


def test_a_gap_is_told(tmp_path):
    """What Redis lost before it was sealed is no damage, and not silent either."""
    archive = archive_in(tmp_path)
    archive.publish(0, entries(5))
    archive.publish(0, entries(5, first=9))
    found = [one for one in archive.verify([0]) if one.found != "sound"]
    assert [(one.found, one.why) for one in found] == [("gap", "numbers 6 to 8 were never sealed")]


def test_a_full_disk_seals_nothing(tmp_path, make_disk):
    """G10: no room: a clear error, no half segment; with room again, sealing goes on."""
    disk = make_disk(tmp_path / "disk", 2 * MIB)
    filler = disk.path / "filler"
    filler.write_bytes(bytes(disk.free() - 8_192))
    rows = entries(2_000)
    with pytest.raises(ArchiveUnavailable, match="No space left"):
        archive_in(disk.path).publish(0, rows)
    assert archive_in(disk.path).end(0) is None
    assert not [one for one in disk.path.rglob("*") if one.name.startswith(".new-")]
    filler.unlink()
    archive_in(disk.path).publish(0, rows)
    assert list(pages(archive_in(disk.path))) == as_logged(rows)


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ("", "{data}/archive/mb/" + LOG),
        ("{data}/else", "{data}/else/mb/" + LOG),
        ("file://{data}/a%20b", "{data}/a b/mb/" + LOG),
        ("s3://user:secret@bucket/x/", "s3://bucket/x/mb/" + LOG),
    ],
)
def test_the_place_is_a_directory_or_a_url(tmp_path, place, where):
    """The setting names a directory or an object store; credentials are never shown."""
    settings = Settings(data_dir=tmp_path, archive=place.format(data=tmp_path))
    assert Archive.from_settings(settings, LOG).where == where.format(data=tmp_path)


def test_another_place_is_refused():
    """A URL that we do not know is an error of the settings."""
    with pytest.raises(ConfigError, match=r"ftp:// is not supported.*s3://"):
        Archive.from_settings(Settings(archive="ftp://x/y"), LOG)


def test_volatile_rows_are_no_events_of_a_scan(tmp_path):
    """A scan yields what there is to see."""
    archive = archive_in(tmp_path)
    archive.publish(0, [entry(1), entry(2, TurnStarted(message="x"))])
    assert [one.position.n for one in archive.scan(0)] == [1]
