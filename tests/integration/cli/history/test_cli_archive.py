"""``memorybus archive``: run, ls, verify, export, import on a real log."""

import sys
from pathlib import Path

from helpers.archive.archives import archive_in
from helpers.processes.commands import result_of
from helpers.stories.people import publish
from helpers.stories.published import envelopes
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.processes import commands
from memorybus_console.cli import main


def ids(settings: Settings) -> set[str]:
    """Return the ids of the events in a log and its archive."""
    return {event.id for event in envelopes(settings)}


def test_the_archive_from_seal_to_import(ready, make_settings, tmp_path, capsys, monkeypatch):
    """G7: sealed, listed, verified, taken elsewhere, and published there once, by event id."""
    publish(ready, 10)
    code, done = result_of(capsys, "archive", "run")
    assert (code, done["errors"]) == (0, {})
    assert done["events"] == 22

    code, shown = result_of(capsys, "archive", "ls")
    segments = shown["segments"]
    assert sum(one["events"] for one in segments) == 22
    code, found = result_of(capsys, "archive", "verify")
    assert (code, found["ok"], found["damaged"]) == (0, True, [])

    code, out = result_of(capsys, "archive", "export", str(tmp_path / "all"))
    assert (code, out["events"]) == (0, 22)
    code, out = result_of(capsys, "archive", "export", str(tmp_path / "ann"), "--user", "ann")
    assert (code, out["events"]) == (0, 11)
    assert main(["archive", "export", str(tmp_path / "all")]) == 2
    assert "holds an archive already" in capsys.readouterr().err

    known = ids(ready)
    other = make_settings(url=ready.url, namespace=f"{ready.namespace}x", partitions=4)
    monkeypatch.setenv("MEMORYBUS_NAMESPACE", other.namespace)
    monkeypatch.setenv("MEMORYBUS_PARTITIONS", "4")
    publish(other, 0)  # the two sessions' beginnings are there already
    code, would = result_of(capsys, "archive", "import", str(tmp_path / "ann"))
    assert (would["new"], would["published"], would["executed"]) == (10, 0, False)
    code, did = result_of(capsys, "archive", "import", str(tmp_path / "ann"), "--yes")
    assert (code, did["published"], did["logged"]) == (0, 10, True)
    code, did = result_of(capsys, "archive", "import", str(tmp_path / "all"), "--yes")
    assert (did["events"], did["new"], did["published"]) == (22, 10, 10)
    assert ids(other) >= known


def test_a_run_that_is_killed_does_not_say_that_nothing_is_due(ready, capsys, monkeypatch):
    """G7: without the archiver's report nothing is known of the archive: the run has failed."""
    publish(ready, 1)
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(commands, "module_command", lambda *_: killed)
    assert main(["archive", "run"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "ended without a report (exit code -9)" in shown.err
    assert "nothing is due" not in shown.err


def test_a_workspace_is_taken_apart_from_others(ready, tmp_path, capsys):
    """Export and import take one workspace alone; '' is that of sessions which name none."""
    with MemoryBus.connect(ready) as bus:
        for turns, workspace in enumerate(("", "boat", "house"), 1):
            session = bus.session("s", user="ann", workspace=workspace, warm=False)
            for turn in range(turns):
                session.turn_completed(f"ann asks {turn}", "well", ordinal=turn)
        assert bus.flush("logged", 10)
    assert result_of(capsys, "archive", "run")[0] == 0

    boat, rest, everything = (str(tmp_path / name) for name in ("boat", "rest", "everything"))
    _, out = result_of(capsys, "archive", "export", boat, "--workspace", "boat")
    assert out["events"] == 3  # two turns and the session's beginning
    _, out = result_of(capsys, "archive", "export", rest, "--workspace", "house", "--workspace", "")
    assert out["events"] == 6
    result_of(capsys, "archive", "export", everything)
    _, would = result_of(capsys, "archive", "import", everything, "--workspace", "house")
    assert would["events"] == 4


def test_verify_names_what_is_damaged(ready, capsys):
    """G7: a wrong byte: exit code 1, and the file by name, for people and programs."""
    publish(ready, 5)
    result_of(capsys, "archive", "run")
    file = next(Path(str(ready.data_dir)).rglob("p*/segments/*.parquet"))
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(bytes(data))
    code, found = result_of(capsys, "archive", "verify")
    assert (code, found["ok"]) == (1, False)
    assert [one["file"] for one in found["damaged"]] == [f"segments/{file.name}"]
    assert main(["archive", "verify"]) == 1
    assert file.name in capsys.readouterr().err


def test_a_directory_without_an_archive_is_named(ready, tmp_path, capsys):
    """A wrong directory is told as what it lacks, not as an empty archive."""
    publish(ready, 1)
    assert main(["archive", "import", str(tmp_path)]) == 2
    assert "holds no archive" in capsys.readouterr().err
    assert archive_in(tmp_path).end(0) is None
