"""What the fault suite counted becomes the table of the page, and no figure is made up."""

import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.faults import results
from helpers.faults.results import ROOT, Round
from helpers.faults.scale import share_of

TABLE: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "fault_table.py"))
WHEN = ("abc", "2026-11-23", 7)


def as_read(lines: list[results.Line], path: Path) -> list[dict[str, Any]]:
    """Return lines as the script of the page reads them."""
    results.write(lines, path)
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def test_rounds_of_a_row_add_up() -> None:
    """Counts add up, measures give their range, and what no round counted is no zero."""
    rounds = [
        Round(row="kills", share=0.25, faults=18, events=100, lost=0, besides=besides, passed=True)
        for besides in ({"stale": 1, "slowest_s": 0.5}, {"stale": 2, "slowest_s": 1.5})
    ]
    (line,) = results.together(rounds, *WHEN)
    assert (line.rounds, line.failed, line.faults, line.events, line.lost) == (2, 0, 36, 200, 0)
    assert line.twice is None
    assert line.besides == {"stale": 3, "slowest_s": (0.5, 1.5)}


def test_a_row_that_runs_again_replaces_its_line(tmp_path: Path) -> None:
    """The file has one line for each row, of its last run; other rows stay."""
    path = tmp_path / "faults.jsonl"
    results.write(
        results.together([Round(row="a", faults=1), Round(row="b", faults=2)], *WHEN), path
    )
    results.write(results.together([Round(row="a", faults=3)], *WHEN), path)
    assert [(line.row, line.faults) for line in results.read(path)] == [("a", 3), ("b", 2)]


def test_the_table_says_share_and_commit(tmp_path: Path) -> None:
    """A line of the page names share, counts, commit, day and seed of its row."""
    line = Round(row="kills", share=0.25, faults=1440, events=9, lost=0, passed=True)
    read = as_read(results.together([line], *WHEN), tmp_path / "faults.jsonl")
    page = TABLE["filled"]("<!-- faults -->\n<!-- end faults -->", read)
    assert "| kills | 0.25 | 1 | 1,440 | 9 | 0 | – |  | abc, 2026-11-23, seed 7 |" in page


def test_a_row_that_did_not_run_keeps_its_line(tmp_path: Path) -> None:
    """A run of some rows replaces their lines and leaves all others, in order of their names."""
    both = results.together([Round(row="b", passed=True), Round(row="a", passed=True)], *WHEN)
    page = TABLE["filled"](
        "<!-- faults -->\n<!-- end faults -->", as_read(both, tmp_path / "both.jsonl")
    )
    later = results.together([Round(row="b", faults=5, passed=True)], *WHEN)
    page = TABLE["filled"](page, as_read(later, tmp_path / "later.jsonl"))
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert [(row[0], row[3]) for row in rows] == [("| row", "faults"), ("| a", "0"), ("| b", "5")]


@pytest.mark.parametrize(("rounds", "said"), [([], "no row"), ([Round(row="kills")], "kills")])
def test_no_table_of_what_failed(rounds: list[Round], said: str, tmp_path: Path) -> None:
    """A row that failed, also before it had counted anything, is no line of the page."""
    read = as_read(results.together(rounds, *WHEN), tmp_path / "faults.jsonl")
    with pytest.raises(TABLE["NoTable"], match=said):
        TABLE["filled"]("<!-- faults -->\n<!-- end faults -->", read)


@pytest.mark.parametrize("text", ["0", "-0.1", "1.01", "nan", "inf", "a quarter"])
def test_a_share_is_above_nothing_and_at_most_all(text: str) -> None:
    """What is no share of a row's counts is refused, with one that is."""
    with pytest.raises(ValueError, match=r"SHARE=0\.25"):
        share_of(text, quick=False)


def test_a_share_is_of_the_long_form() -> None:
    """Without SHARE a row does all; the short form has no share to take."""
    assert (share_of("", quick=False), share_of("0.25", quick=False)) == (1.0, 0.25)
    with pytest.raises(ValueError, match="QUICK=1"):
        share_of("0.25", quick=True)
