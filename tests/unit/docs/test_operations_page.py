"""The page of operations names every metric and every finding, and no other."""

import re
from pathlib import Path
from typing import get_args

from helpers.stories.statuses import JOBS, provider, status
from memorybus.health.finding import Code
from memorybus.health.metrics import status_metrics

PAGE = (Path(__file__).parents[3] / "docs/operations.md").read_text()


def first_cells(heading: str, start: str) -> str:
    """Return the first cells of a section's table, of the rows that begin so."""
    table = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return "".join(line.split("|")[1] for line in table.splitlines() if line.startswith(start))


def test_the_page_has_every_metric():
    """G10: every metric is explained in words, under the name that Prometheus sees."""
    names = re.findall(r"`(?:memorybus)?(_\w+)`", first_cells("Metrics", "| `memorybus_"))
    families = list(status_metrics(status(provider(), jobs=[JOBS]), "1", (), 0))
    suffix = {"counter": "_total", "info": "_info"}
    expected = {f"{one.name}{suffix.get(one.type, '')}" for one in families}
    assert {f"memorybus{name}" for name in names} == expected


def test_the_page_has_every_finding():
    """G10: whoever reads a finding's code is led to what it means and what to do."""
    assert set(re.findall(r"`(\w+)`", first_cells("Alerts and findings", "| `"))) == {
        *get_args(Code)
    }
