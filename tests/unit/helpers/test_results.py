"""What the fault suite counted is kept by rows, and no figure is made up."""

import pytest
from helpers.faults import results
from helpers.faults.results import Round
from helpers.faults.scale import share_of

WHEN = ("abc", "2026-11-23", 7)


def test_rounds_of_a_row_add_up():
    """Counts add up, measures give their range, and what no round counted is no zero."""
    rounds = [
        Round(row="kills", share=0.25, faults=18, events=100, lost=0, besides=besides, passed=True)
        for besides in ({"stale": 1, "slowest_s": 0.5}, {"stale": 2, "slowest_s": 1.5})
    ]
    (line,) = results.together(rounds, *WHEN)
    assert (line.rounds, line.failed, line.faults, line.events, line.lost) == (2, 0, 36, 200, 0)
    assert line.twice is None
    assert line.besides == {"stale": 3, "slowest_s": (0.5, 1.5)}


def test_a_row_that_runs_again_replaces_its_line(tmp_path):
    """The file has one line for each row, of its last run; other rows stay."""
    path = tmp_path / "faults.jsonl"
    results.write(
        results.together([Round(row="a", faults=1), Round(row="b", faults=2)], *WHEN), path
    )
    results.write(results.together([Round(row="a", faults=3)], *WHEN), path)
    assert [(line.row, line.faults) for line in results.read(path)] == [("a", 3), ("b", 2)]


@pytest.mark.parametrize("text", ["0", "-0.1", "1.01", "nan", "inf", "a quarter"])
def test_a_share_is_above_nothing_and_at_most_all(text):
    """What is no share of a row's counts is refused, with one that is."""
    with pytest.raises(ValueError, match=r"SHARE=0\.25"):
        share_of(text, quick=False)


def test_a_share_is_of_the_long_form():
    """Without SHARE a row does all; the short form has no share to take."""
    assert (share_of("", quick=False), share_of("0.25", quick=False)) == (1.0, 0.25)
    with pytest.raises(ValueError, match="QUICK=1"):
        share_of("0.25", quick=True)
