"""Segments: Parquet that gives back what the log gave, and that other engines read."""

import glob
import io
from unittest import mock

import duckdb
import msgspec
import pytest
from helpers.archive.archives import LOG, archive_in, as_logged, entries, entry, pages, raw
from helpers.stories.samples import SAMPLES
from memorybus.archive import writer
from memorybus.archive.format import bloom
from memorybus.archive.format.manifest import LogPartition
from memorybus.archive.format.parquet import (
    GROUP_ROWS,
    UNREADABLE,
    RawEntry,
    build_segment,
    segment_rows,
)
from memorybus.archive.format.reader import SegmentReader
from memorybus.errors import ArchiveDamaged
from memorybus.events import MemoryWritten, TurnStarted
from memorybus.log.entry import OMITTED_ENVELOPES
from memorybus.query.query import Query
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder

OF = LogPartition("t", LOG, 0)


def newer(n: int) -> RawEntry:
    """Return an entry with an event of a release to come."""
    body = msgspec.msgpack.decode(Decoder().unpacked(entry(n).fields[3]))
    return raw(n, b"n", b"%d" % n, b"e", msgspec.msgpack.encode(body | {"v": 9}))


FOREIGN = {
    "not ours": raw(2, b"a", b"b"),
    "no number": raw(2, b"n", b"x", b"e", entry(2).fields[3]),
    "another number": raw(2, b"n", b"7", b"a", b"b"),
    "another name": raw(2, b"m", b"2", b"z", entry(2).fields[3]),
}

STRANGE = {
    "a number of another form": raw(2, b"n", b"002", b"e", entry(2).fields[3]),
    "damaged": raw(2, b"n", b"2", b"e", b"\x28\xb5\x2f\xfd broken"),
    "no envelope": raw(2, b"n", b"2", b"e", b"\xc1"),
    "nothing": raw(2, b"n", b"2", b"e", b""),
    "newer": newer(2),
    "unknown": raw(
        2,
        *(b"n", b"2", b"r"),
        entry(2).fields[3].replace(b"TurnCompleted", b"TurnConsumed."),
    ),
    "resent": entry(2, again=True),
    **{type(one).__name__: entry(2, one) for one in SAMPLES if not one.volatile},
}


@pytest.mark.parametrize("name", STRANGE)
def test_an_entry_comes_back_as_the_log_gave_it(tmp_path, name):
    """G7: whatever stands in the log, its lane sees the same from the archive, parked or not."""
    rows = [entry(1), STRANGE[name], entry(3)]
    archive_in(tmp_path).publish(0, rows)
    assert list(pages(archive_in(tmp_path))) == as_logged(rows)


@pytest.mark.parametrize("name", FOREIGN)
def test_what_others_wrote_is_never_sealed(tmp_path, name):
    """G6, G7: an entry that somebody else wrote is not an event, and has no number of its own."""
    with pytest.raises(ValueError, match="is not an event"):
        archive_in(tmp_path).publish(0, [entry(1), FOREIGN[name], entry(3)])


def test_an_archive_that_has_what_others_wrote_gives_events_alone(tmp_path):
    """G3: rows of entries that are not ours, which an older archive may have, are passed over."""
    lines = segment_rows(0, entries(4), Decoder())
    body = msgspec.msgpack.encode([b"hello", b"world"])
    lines[1] = msgspec.structs.replace(lines[1], n=3, kind=UNREADABLE, envelope=body)
    lines[3] = msgspec.structs.replace(lines[3], n=3, kind=UNREADABLE, envelope=body)
    archive = archive_in(tmp_path)
    with mock.patch.object(writer, "segment_rows", return_value=lines):
        archive.publish(0, entries(4))
    assert [one.position.n for one in pages(archive)] == [1, 3]
    assert [one.position.n for one in pages(archive, page=1)] == [1, 3]
    assert [one.position.n for one in archive.scan(0)] == [1, 3]
    assert [one.position.n for one in archive.read_backward(0, f"{2**62}-0")] == [3, 1]
    nothing = Plan(query=Query(users=("nobody",)))
    assert [one.position.n for one in archive.read(0, "0-0", 9, nothing)] == [1, 3]
    last = archive.last_before(0, f"{2**62}-0")
    assert last is not None
    assert last.position.entry == entry(3).entry


def test_volatile_events_keep_their_numbers_only(tmp_path):
    """What is volatile is not archived; its row keeps the numbers dense."""
    rows = [entry(1), entry(2, TurnStarted(number=1, message="secret")), entry(3)]
    segment = archive_in(tmp_path).publish(0, rows)
    found = list(pages(archive_in(tmp_path)))
    assert [one.position.n for one in found] == [1, 2, 3]
    assert found[1].envelope is OMITTED_ENVELOPES["volatile"]
    assert (segment.count, segment.kept) == (3, 2)
    assert b"secret" not in (tmp_path / "p00" / segment.file).read_bytes()


def test_large_events_are_cut_into_small_groups(tmp_path):
    """G10: a group holds few megabytes, however large the events are."""
    big = [entry(n, MemoryWritten(action="add", content="x" * 1_000_000)) for n in range(1, 11)]
    segment, data = build_segment(OF, segment_rows(0, big, Decoder()), 1)
    reader = SegmentReader(io.BytesIO(data), segment, "x")
    assert [cut.count for cut in reader.metadata.groups] == [5, 5]


def test_a_segment_says_whose_it_is():
    """G7: a file in another's place is named by what it says of itself."""
    segment, data = build_segment(OF, segment_rows(0, entries(5), Decoder()), 1)
    other = msgspec.structs.replace(segment, of=LogPartition("t", LOG, 3))
    with pytest.raises(ArchiveDamaged, match="holds a segment of partition 0"):
        SegmentReader(io.BytesIO(data), other, "x")
    moved, _ = build_segment(OF, segment_rows(0, entries(5, 6), Decoder()), 1)
    with pytest.raises(ArchiveDamaged, match="holds the events 1 to 5, not 6 to 10"):
        SegmentReader(io.BytesIO(data), moved, "x")
    with pytest.raises(ArchiveDamaged, match="cannot be read"):
        SegmentReader(io.BytesIO(b"PAR1 no"), segment, "x")


def test_duckdb_reads_it_as_it_lies(tmp_path):
    """The archive is open: another engine counts, selects a session and knows the times."""
    rows = [entry(n, MemoryWritten(action="add") if n % 5 == 0 else None) for n in range(1, 2_101)]
    archive = archive_in(tmp_path)
    archive.publish(0, rows[:1_500])
    archive.publish(0, rows[1_500:])
    files = f"{tmp_path}/p*/segments/*.parquet"
    assert len(glob.glob(files)) == 2
    table = duckdb.connect()
    counts = table.sql(f"select type, count(*) from '{files}' group by type order by type")
    assert counts.fetchall() == [("MemoryWritten", 420), ("TurnCompleted", 1_680)]
    chosen = f"from '{files}' where session = 's-3' order by n"
    one = table.sql(f'select n, id::text, epoch_ms("at") {chosen}')
    wanted = [x for x in as_logged(rows) if x.envelope.session.id == "s-3"]
    shown = [(n, known.replace("-", ""), at) for n, known, at in one.fetchall()]
    assert shown == [(x.position.n, x.envelope.id, x.envelope.at) for x in wanted]


def test_rows_are_cut_by_number(tmp_path):
    """A page may begin and end anywhere: within a group, at its edge, in another segment."""
    rows = entries(2 * GROUP_ROWS + 50)
    archive = archive_in(tmp_path)
    archive.publish(0, rows[: GROUP_ROWS + 20])
    archive.publish(0, rows[GROUP_ROWS + 20 :])
    known = as_logged(rows)
    for start in (0, 1, GROUP_ROWS - 1, GROUP_ROWS, GROUP_ROWS + 19, GROUP_ROWS + 20, 2_040):
        after = known[start - 1].position.entry if start else "0-0"
        assert archive.read(0, after, 25) == known[start : start + 25]
    assert list(archive.scan(0)) == known


@pytest.mark.parametrize("count", [0, 1, 100, 20_000])
def test_a_filter_never_denies_what_is_there(count):
    """Skipping a segment is safe: what its filter denies is not in it; and it denies most else."""
    words = [f"session-{n}" for n in range(count)]
    text = bloom.build_filter(words)
    assert all(bloom.may_hold(text, [word]) for word in words[:500])
    wrong = sum(bloom.may_hold(text, [f"other-{n}"]) for n in range(1_000))
    assert wrong <= (30 if count <= 100 else 700)
    assert len(text) <= -(-bloom.MAX_BYTES * 4 // 3) + 4


def test_a_text_that_is_no_filter_denies_nothing():
    """A filter of another format costs time, never events."""
    assert bloom.may_hold("?", ["x"])
