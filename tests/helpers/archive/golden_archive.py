"""Seals most of a golden log: `python -m helpers.archive.golden_archive DIRECTORY`.

The directory tests/ must be on the path.

For the next format; the files of the old ones stay as they are. The directory holds `log.jsonl`.
"""

import sys
from pathlib import Path

from memorybus.archive.archive import Archive
from memorybus.archive.format.parquet import RawEntry
from memorybus.archive.tombstones import Tombstone
from memorybus.config.settings import Settings
from memorybus.query.query import Query
from memorybus_workers.archiving.due import number_entries

from helpers.archive.golden_log import PARTITIONS, stored

NAMESPACE = "golden"
LOG_ID = "0198f2c4a1b27c3d8e4f5a6b7c8d0001"

SEGMENTS = {0: (8, 15), 1: (8,)}
"""How many entries of a partition each of its segments ends with; what is left stays in the log."""

FORGOTTEN = Tombstone(
    id="0198f2c4a1b27c3d8e4f5a6b7c8d0002",
    query=Query(users=("mallory",)),
    reason="asked to be forgotten",
    at=1_760_000_100_000,
    by="ann@home",
)


def seal(directory: Path) -> None:
    """Write the archive of the log that lies in a directory."""
    place = directory / "archive"
    settings = Settings(namespace=NAMESPACE, partitions=PARTITIONS, archive=str(place))
    archive = Archive.from_settings(settings, LOG_ID)
    entries = stored(directory / "log.jsonl")
    for partition, ends in SEGMENTS.items():
        found = number_entries(
            [(e.entry, e.fields) for e in entries if e.partition == partition], 0
        )
        for first, end in zip((0, *ends), ends, strict=False):
            rows = [RawEntry(one.entry, one.n, one.fields) for one in found[first:end]]
            archive.publish(partition, rows)
    archive.forget(FORGOTTEN)


if __name__ == "__main__":
    seal(Path(sys.argv[1]))
