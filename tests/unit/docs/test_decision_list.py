"""The list of decisions is made of their files, and refuses what it could not show truly."""

from pathlib import Path

import pytest
from decision_list import BadDecision, decisions, page

HEAD = "# {number}. Wait\n\nDate: 2026-11-20\n\nStatus: {status}\n\n## Decision\n\nWait.\n"


def write(folder: Path, name: str, number: int, status: str = "accepted") -> None:
    """Write one decision."""
    (folder / name).write_text(HEAD.format(number=number, status=status))


def test_a_decision_is_a_row(tmp_path: Path) -> None:
    """The list has number, title, date and status of each file, in order of the numbers."""
    write(tmp_path, "0010-wait.md", 10)
    write(tmp_path, "0009-wait.md", 9, "superseded by 10")
    rows = page(decisions(tmp_path)).splitlines()[-2:]
    assert rows == [
        "| 9 | [Wait](0009-wait.md) | 2026-11-20 | superseded by 10 |",
        "| 10 | [Wait](0010-wait.md) | 2026-11-20 | accepted |",
    ]


@pytest.mark.parametrize(
    ("name", "number", "status", "said"),
    [
        ("0002-wait.md", 3, "accepted", "holds decision 3"),
        ("wait.md", 2, "accepted", "holds decision 2"),
        ("0002-wait.md", 2, "maybe", "does not begin"),
        ("0002-wait.md", 2, "superseded by 7", "names decision 7"),
        ("0001-once-more.md", 1, "accepted", "several files"),
    ],
)
def test_what_is_no_decision_is_refused(
    tmp_path: Path, name: str, number: int, status: str, said: str
) -> None:
    """A file of another form, number or status is named, and no list is written."""
    write(tmp_path, "0001-wait.md", 1)
    write(tmp_path, name, number, status)
    with pytest.raises(BadDecision, match=said):
        decisions(tmp_path)
