"""A lineage is a session with all that came from it, by branch, compression or delegation."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from memorybus.events import (
    Delegated,
    Envelope,
    Event,
    Reason,
    Scope,
    SessionRef,
    SessionStarted,
    SessionSwitched,
)
from memorybus.history.history import expand_lineages
from memorybus.query.query import Query

ANYBODY = Scope()


def said(session: str, event: Event, parent: str = "", scope: Scope = ANYBODY) -> Envelope:
    """Return an event of a session."""
    return Envelope(
        id="0" * 32,
        key="k",
        scope=scope,
        session=SessionRef(session, session, parent),
        at=0,
        event=event,
    )


def switch(session: str, parent: str, reason: Reason) -> Envelope:
    """Return a switch to a session."""
    ours = parent if reason in ("branch", "compression") else ""
    return said(session, SessionSwitched(new_id=session, parent=parent, reason=reason), ours)


EVENTS = [
    said("a", SessionStarted()),
    switch("b", "a", "branch"),
    switch("c", "b", "compression"),
    said("c", Delegated(task="t", child_session="d")),
    said("e", SessionStarted(parent="d", reason="delegation")),
    switch("x", "a", "resume"),
    switch("y", "c", "reset"),
    switch("a", "a", "rewind"),
    said("loop", SessionStarted(parent="loop2", reason="branch")),
    said("loop2", SessionStarted(parent="loop", reason="branch")),
]


@pytest.mark.parametrize(
    ("lineages", "sessions"),
    [
        (("a",), ("a", "b", "c", "d", "e")),
        (("c",), ("c", "d", "e")),
        (("x",), ("x",)),
        (("loop",), ("loop", "loop2")),
        (("nobody",), ("nobody",)),
        (("e", "y"), ("e", "y")),
    ],
)
def test_a_lineage_is_a_session_and_what_came_from_it(lineages, sessions):
    """Resumed and reset sessions are others' lineages; circles are walked once."""
    for events in (EVENTS, EVENTS[::-1]):
        found = expand_lineages(Query(lineages=lineages), events)
        assert (found.lineages, found.sessions) == ((), sessions)


@pytest.mark.parametrize(
    ("wanted", "sessions"),
    [
        (Query(lineages=("a",)), ("a", "b", "y")),
        (Query(lineages=("a",), users=("ann",)), ("a", "b")),
        (Query(lineages=("a",), users=("ben",)), ("a", "y")),
        (Query(lineages=("b",), users=("ben",)), ("b", "c")),
    ],
)
def test_what_came_from_a_session_is_of_its_own_scope(wanted, sessions):
    """Of two people's sessions of one id, neither's lineage goes on in the other's."""
    ben = Scope(user="ben")
    events = [
        said("b", SessionStarted(parent="a", reason="branch"), "a", Scope(user="ann")),
        said("y", SessionStarted(parent="a", reason="branch"), "a", ben),
        said("c", SessionStarted(parent="b", reason="branch"), "b", ben),
    ]
    assert expand_lineages(wanted, events).sessions == sessions


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
