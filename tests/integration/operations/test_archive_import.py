"""``memorybus archive import`` and what the target had before: by id, whatever became of it."""

import gc
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from helpers.archive.archives import LOG, archive_in, entries
from helpers.archive.sealed_log import QUICK
from memorybus.archive.tombstones import Tombstone
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveUnavailable
from memorybus.query.query import EVERYTHING, Query
from memorybus_console.operations.archive import export_archive, import_archive
from memorybus_console.operations.ingest.new_events import ImportResult, KnownIds
from memorybus_workers.archiving.archiver import run_once


def taken_in(settings: Settings, directory: Path, *, execute: bool = True) -> ImportResult:
    """Import everything in a directory."""
    return import_archive(settings, directory, EVERYTHING, lambda: None, execute=execute)


def test_what_was_forgotten_or_outlived_is_not_taken_in_again(log, make_settings, tmp_path):
    """G2: an older copy brings back neither what a tombstone hides nor what retention took out."""
    log.append(20, user="ann")
    log.append(20, user="bob")
    log.append(20, user="cleo")
    run_once(log.settings)
    export_archive(log.settings, tmp_path, EVERYTHING, lambda: None)
    log.archive().forget(Tombstone(id="t", query=Query(users=("ann",))))
    short = msgspec.structs.replace(log.settings, retention={"user:bob": 0.001})
    run_once(short)
    run_once(short)
    kept = [type(one.envelope.event).__name__ for one in log.archive().read(log.PARTITION)]
    assert kept == ["Omitted"] * 40 + ["TurnCompleted"] * 20
    done = taken_in(log.settings, tmp_path)
    assert (done.events, done.new, done.published) == (60, 0, 0)


def test_an_archive_that_lacks_what_was_sealed_is_not_asked(log, tmp_path):
    """G2: where it is not known what the log had, nothing is imported."""
    log.grow()
    archive_in(tmp_path / "from" / "t" / LOG).publish(0, entries(10))
    log.settings.data_dir.joinpath("archive").rename(tmp_path / "gone")
    with pytest.raises(ArchiveUnavailable, match="events up to 50 were sealed"):
        taken_in(log.settings, tmp_path / "from")


def test_more_than_the_spool_holds_is_imported(log, make_settings, tmp_path):
    """G10: an import waits for the log instead of filling the spool: that is the agents' buffer."""
    log.append(1_500, words=200)
    run_once(log.settings)
    export_archive(log.settings, tmp_path, EVERYTHING, lambda: None)
    other = make_settings(**QUICK, namespace=f"{log.settings.namespace}x", spool_max_bytes=1 << 19)
    done = taken_in(other, tmp_path)
    assert (done.published, done.logged) == (1_500, True)


def test_ids_are_not_held_in_memory():
    """G10: what is known of a log's ids takes no more memory for a longer log."""
    with KnownIds() as known:
        gc.collect()
        tracemalloc.start()
        for page in range(20):
            known.add(f"{n:032x}" for n in range(page * 500, page * 500 + 500))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 50_000
        assert not known.is_new(f"{9_999:032x}")
        assert known.is_new(f"{10_000:032x}")
        assert not known.is_new(f"{10_000:032x}")
