"""An archive that has less than Redis knows of is named by whoever would read it (G7)."""

import json
from typing import Any

import pytest
from helpers.archive.sealed_log import QUICK, SealedLog, found_by_commands, newest_manifest
from memorybus.archive.tombstones import DamageHandler
from memorybus.errors import ArchiveUnavailable
from memorybus.history.history import History
from memorybus_console.cli import main
from memorybus_workers.archiving.archiver import run_once

P = SealedLog.PARTITION


@pytest.fixture(name="log")
def _log(log: SealedLog, monkeypatch: pytest.MonkeyPatch) -> SealedLog:
    """Return a log of which 100 events are sealed, and that the command line finds."""
    found_by_commands(log, monkeypatch)
    for _ in range(2):
        log.grow()
    return log


def verified(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Return what ``archive verify`` says."""
    code = main(["archive", "verify", "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_newest_manifest_that_is_gone_is_named(log, tmp_path, capsys):
    """G7: what is left looks whole by itself: Redis knows better, whoever reads or copies it."""
    assert verified(capsys)[0] == 0
    newest_manifest(log.settings).unlink()
    code, said = verified(capsys)
    (found,) = said["damaged"]
    assert (code, found["partition"]) == (1, P)
    assert "events 51 to 99 were sealed, but no manifest here lists them" in found["why"]
    assert main(["archive", "export", str(tmp_path / "copy")]) == 1
    assert "ends at 50" in capsys.readouterr().err
    history = History.from_settings(log.redis, log.settings)
    assert len(history.read(P, count=1_000).events) == 50
    with pytest.raises(ArchiveUnavailable, match="events up to 99 were sealed"):
        history.read(P, history.read(P, count=50).events[-1].position.entry, after_n=50)


def test_it_is_named_though_the_log_can_mend_it(log, make_settings, capsys):
    """G7: while the log still has the rest, the remedy is to seal it again."""
    log.append(50)
    run_once(make_settings(**QUICK | {"hot_window": 3600.0}))
    newest_manifest(log.settings).unlink()
    code, said = verified(capsys)
    (found,) = said["damaged"]
    assert code == 1
    assert "events 101 to 150 were sealed" in found["why"]
    assert "`memorybus archive run` seals them again" in found["why"]
    run_once(log.settings)
    assert verified(capsys)[0] == 0
    log.assert_whole()


def test_an_archive_that_is_gone_altogether_is_named(log, capsys):
    """G7: an empty directory is no archive without events where Redis knows of some."""
    log.settings.data_dir.joinpath("archive").rename(log.settings.data_dir / "elsewhere")
    code, said = verified(capsys)
    assert (code, said["sound"]) == (1, 0)
    assert "events 1 to 99 were sealed" in said["damaged"][0]["why"]


def test_a_scan_names_what_the_archive_lacks(log):
    """Who reads everything is told of the hole, and has the rest if they listen to damage."""
    newest_manifest(log.settings).unlink()
    history = History.from_settings(log.redis, log.settings)
    with pytest.raises(ArchiveUnavailable, match="ends at"):
        list(history.scan())
    told: list[str] = []
    assert len(list(history.scan(damage=DamageHandler(told)))) == 51
    assert len(told) == 1
    history.close()


def test_a_damaged_manifest_is_refused_until_it_is_moved_away(log, make_settings, capsys):
    """G7: nothing is sealed behind damage; the manifest before it and the log have all."""
    settings = make_settings(**QUICK | {"hot_window": 3600.0})
    log.append(20)
    run_once(settings)
    manifest = newest_manifest(log.settings)
    manifest.write_bytes(manifest.read_bytes().replace(b'"count":', b'"Count":', 1))
    log.append(5)
    assert f"{manifest.name}, line 1: is not as it was written" in run_once(settings).errors["p01"]
    code, result = verified(capsys)
    assert (code, result["damaged"][0]["file"]) == (1, manifest.name)
    manifest.rename(manifest.with_suffix(".damaged"))
    assert run_once(settings).errors == {}
    log.assert_whole()
    assert log.sealed() == 125
