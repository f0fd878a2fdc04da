"""What the page of the history says other tools can do with the archive, done."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "history.md").read_text()
ARCHIVE = ROOT / "tests" / "golden" / "history-1" / "archive" / "golden"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a DuckDB that knows which segments count, as the page says."""
    given, segments = _blocks("sql")[0].split(";\n", 2)[:2]
    assert given.startswith("SET VARIABLE place = ")
    known = duckdb.connect()
    known.execute(f"SET VARIABLE place = '{ARCHIVE}/*'")
    known.execute(segments)
    yield known
    known.close()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_duckdb_queries_the_archive_as_it_lies(database):
    """The query of the page counts each sealed event once, though older manifests lie beside."""
    asked = _blocks("sql")[0].split(";\n", 2)[2]
    rows = database.execute(asked).fetchall()
    counts = {kind: events for kind, _, events, *_ in rows}
    assert sum(events for _, _, events, *_ in rows) == 23
    assert (counts["DreamDreamt"], counts["SessionStarted"], counts["MemoryWritten"]) == (1, 1, 2)


def test_envelopes_are_read_without_memorybus(database):
    """The program of the page finds the turns of a session in the envelopes."""
    program = next(block for block in _blocks("python") if "duckdb" in block)
    files = database.execute("SELECT getvariable('segments')").fetchall()[0][0]
    names = {"files": files}
    exec(compile(program, "history.md", "exec"), names)
    turns: object = names["turns"]
    assert isinstance(turns, list)
    assert [turn["type"] for turn in turns][:3] == [
        "SessionStarted",
        "TurnCompleted",
        "MemoryWritten",
    ]
