"""``memorybus ingest --from``: another memory's export enters a real log once."""

import json
from typing import Any, get_args

import pytest
from memorybus.config.settings import Settings
from memorybus.events import Envelope
from memorybus.history.history import History
from memorybus.redis.connect import connect_redis
from memorybus_console.cli import main
from memorybus_console.cli.events.ingest import SourceName
from memorybus_console.operations.ingest.foreign.sources import PARSERS


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run a command with --json; return its exit code and what it says."""
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def history(settings: Settings) -> list[Envelope]:
    """Return all events of a log."""
    return [one.envelope for one in History.from_settings(connect_redis(settings), settings).scan()]


def test_every_source_can_be_named():
    """The command line offers the sources that have a parser, and no others."""
    assert set(get_args(SourceName)) == set(PARSERS)


def test_an_export_enters_once_with_its_times(ready, tmp_path, capsys):
    """G2: ids depend on the source alone, so that a second run adds nothing."""
    memory = {"id": "1", "memory": "Ann sails", "user_id": "ann", "created_at": "2026-06-01"}
    file, more = tmp_path / "m.json", tmp_path / "more.json"
    file.write_text(json.dumps({"results": [memory, {"id": "2"}, {"id": "3", "memory": ""}]}))
    more.write_text(json.dumps([memory, memory | {"id": "4", "memory": "Ann rows"}]))

    code, did = told(capsys, "ingest", "--from", "mem0", str(file))
    assert (code, did["events"], did["new_events"], did["skipped"]) == (1, 1, 1, 1)
    assert "no 'memory'" in did["refused"][0]["why"]
    (came,) = history(ready)
    assert (came.scope.user, came.at) == ("ann", 1_780_272_000_000)

    code, did = told(capsys, "ingest", "--from", "mem0", str(more), str(tmp_path / "none"))
    assert (code, did["events"], did["new_events"], did["files"]) == (1, 2, 1, 1)
    assert "none" in did["refused"][0]["why"]
    assert main(["ingest", "--from", "mem1", str(file)]) == 2
