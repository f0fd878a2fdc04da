"""``memorybus archive import`` of an archive that a stranger made: its sums hold, its rows lie."""

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.archive.archives import LOG, entries
from helpers.archive.sealed_log import SealedLog
from memorybus.archive.format.manifest import LogPartition, Segment, render
from memorybus.archive.format.parquet import METADATA_KEY, SegmentRow, segment_rows
from memorybus.archive.format.parquet import build_segment as seal
from memorybus.errors import ArchiveDamaged
from memorybus.ids import sha256
from memorybus.log.entry import Place
from memorybus.query.query import EVERYTHING
from memorybus.wire.codec import Decoder
from memorybus_console.operations.archive import import_archive
from memorybus_console.operations.ingest.new_events import ImportResult
from pyarrow import Table, array, int64, parquet

OF = LogPartition("t", LOG, 0)
ROWS = 20

Changed = Callable[[Any], Any]


def same(what: Any) -> Any:
    """Change nothing."""
    return what


def planted(directory: Path, lines: Changed, table: Changed, segment: Changed) -> None:
    """Write an archive of one segment whose sums are right."""
    made, data = seal(OF, lines(segment_rows(0, entries(ROWS), Decoder())), 1)
    data = rewritten(data, table)
    made = segment(msgspec.structs.replace(made, sha256=sha256(data), bytes=len(data)))
    home = directory / "t" / LOG / "p00"
    (home / "segments").mkdir(parents=True)
    (home / "segments" / made.file.rpartition("/")[2]).write_bytes(data)
    (home / "manifest-000000000001.jsonl").write_bytes(render(OF, 1, [made], 1))


def rewritten(data: bytes, table: Changed) -> bytes:
    """Return a segment's bytes with another table in it."""
    target = io.BytesIO()
    parquet.write_table(table(parquet.read_table(io.BytesIO(data))), target)
    return target.getvalue()


def taken_in(log: SealedLog, directory: Path) -> ImportResult:
    """Import everything in a directory."""
    return import_archive(log.settings, directory, EVERYTHING, lambda: None, execute=True)


def with_column(name: str, values: Sequence[Any]) -> Changed:
    """Return what puts numbers in a column's place."""

    def changed(table: Table) -> Table:
        place = table.schema.get_field_index(name)
        found = table.set_column(place, name, array(values, int64()))
        return found.replace_schema_metadata(table.schema.metadata)

    return changed


def without_envelopes(table: Table) -> Table:
    """Leave a column out."""
    return table.drop_columns(["envelope"]).replace_schema_metadata(table.schema.metadata)


def with_more_rows(table: Table) -> Table:
    """Say that there are more rows than there are."""
    inside = msgspec.json.decode(table.schema.metadata[METADATA_KEY])
    inside["groups"][0][2] = 2**60
    return table.replace_schema_metadata({METADATA_KEY: msgspec.json.encode(inside)})


def with_cut_at(entry: str) -> Changed:
    """Return what gives a group another beginning."""

    def changed(table: Table) -> Table:
        inside = msgspec.json.decode(table.schema.metadata[METADATA_KEY])
        inside["groups"][0][0] = entry
        return table.replace_schema_metadata({METADATA_KEY: msgspec.json.encode(inside)})

    return changed


def row(**changes: Any) -> Changed:
    """Return what changes a row in the middle."""

    def changed(lines: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
        middle = msgspec.structs.replace(lines[5], **changes)
        return [*lines[:5], middle, *lines[6:]]

    return changed


def segment(**changes: Any) -> Changed:
    """Return what changes the manifest's line."""

    def changed(one: Segment) -> Segment:
        return msgspec.structs.replace(one, **changes)

    return changed


LIES: dict[str, tuple[Changed, Changed, Changed, str]] = {
    "no envelopes": (same, without_envelopes, same, "cannot be read"),
    "numbers for envelopes": (same, with_column("envelope", range(ROWS)), same, "cannot be read"),
    "numbers for entries": (same, with_column("entry", range(ROWS)), same, "cannot be read"),
    "more rows": (same, with_more_rows, same, "20 rows where"),
    "no cut": (same, with_cut_at("?"), same, "cannot be read"),
    "no entry": (row(entry="abc"), same, same, "cannot be read"),
    "no reason": (row(omitted="because"), same, same, "cannot be read"),
    "no fields": (row(kind="stray", envelope=b"\xc1"), same, same, "cannot be read"),
    "no place": (same, same, segment(first=Place("abc", 1)), "line 1: is not as it was"),
    "no file": (same, same, segment(file="segments/../x.parquet"), "line 1: is not as it was"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_no_archiver_wrote_is_named(log, tmp_path, lie):
    """G7: an import ends with the name of the file, whatever is in it, and publishes no lie."""
    lines, table, changed, why = LIES[lie]
    planted(tmp_path, lines, table, changed)
    with pytest.raises(ArchiveDamaged, match=why):
        taken_in(log, tmp_path)
    assert log.head() == 0


@pytest.mark.parametrize("name", ["../../../../pipe", "segments/pipe.parquet"])
def test_a_pipe_in_a_files_place_is_not_read(log, tmp_path, name):
    """G7, G10: nothing outside an archive is opened, and nothing that would never end."""
    planted(tmp_path / "a", same, same, segment(file=name))
    home = tmp_path / "a" / "t" / LOG / "p00"
    (home / "segments" / "pipe.parquet").unlink(missing_ok=True)
    os.mkfifo((home / name).resolve())
    with pytest.raises(ArchiveDamaged, match=r"not a regular file|is not as it was"):
        taken_in(log, tmp_path / "a")


@pytest.mark.parametrize("wrong", [{"id": "no id"}, {"id": "G" * 32}, {"at": -1}, {"at": 2**60}])
def test_an_id_or_a_time_that_nobody_publishes_is_refused(log, tmp_path, wrong):
    """G6: what the log would not take for an event is refused, and the rest is taken in."""

    def changed(lines: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
        body = msgspec.msgpack.decode(lines[5].envelope or b"") | wrong
        return row(envelope=msgspec.msgpack.encode(body))(lines)

    planted(tmp_path, changed, same, same)
    done = taken_in(log, tmp_path)
    assert (done.published, done.refused_events) == (ROWS - 1, 1)
    assert list(done.refused.values()) == ["this release does not know its form"]


def test_a_folder_that_is_no_partition_is_passed_over(log, tmp_path):
    """G7: digits of another script name neither a partition nor a manifest."""
    planted(tmp_path, same, same, same)
    home = tmp_path / "t" / LOG
    for name in ("p²", "p00"):
        (home / name).mkdir(exist_ok=True)
        (home / name / "manifest-²²².jsonl").write_bytes(b"x")
    assert taken_in(log, tmp_path).published == ROWS
