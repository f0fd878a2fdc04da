"""``memorybus ingest --from``: another memory's export enters a real log once."""

import json
from typing import get_args

from helpers.processes.commands import result_of
from helpers.stories.published import envelopes
from memorybus_console.cli import main
from memorybus_console.cli.events.ingest import SourceName
from memorybus_console.operations.ingest.foreign.sources import PARSERS


def test_every_source_can_be_named():
    """The command line offers the sources that have a parser, and no others."""
    assert set(get_args(SourceName)) == set(PARSERS)


def test_an_export_enters_once_with_its_times(ready, tmp_path, capsys):
    """G2: ids depend on the source alone, so that a second run adds nothing."""
    memory = {"id": "1", "memory": "Ann sails", "user_id": "ann", "created_at": "2026-06-01"}
    file, more = tmp_path / "m.json", tmp_path / "more.json"
    file.write_text(json.dumps({"results": [memory, {"id": "2"}, {"id": "3", "memory": ""}]}))
    more.write_text(json.dumps([memory, memory | {"id": "4", "memory": "Ann rows"}]))

    code, did = result_of(capsys, "ingest", "--from", "mem0", str(file))
    assert (code, did["events"], did["new_events"], did["skipped"]) == (1, 1, 1, 1)
    assert "no 'memory'" in did["refused"][0]["why"]
    (came,) = envelopes(ready)
    assert (came.scope.user, came.at) == ("ann", 1_780_272_000_000)

    code, did = result_of(capsys, "ingest", "--from", "mem0", str(more), str(tmp_path / "none"))
    assert (code, did["events"], did["new_events"], did["files"]) == (1, 2, 1, 1)
    assert "none" in did["refused"][0]["why"]
    assert main(["ingest", "--from", "mem1", str(file)]) == 2
