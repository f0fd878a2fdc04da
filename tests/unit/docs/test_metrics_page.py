"""The page of operations names every metric, and no other."""

import re
from pathlib import Path

from helpers.stories.statuses import JOBS, provider, status
from memorybus.health.metrics import status_metrics

PAGE = Path(__file__).parents[3] / "docs/operations.md"


def documented() -> set[str]:
    """Return the metrics of the page's table."""
    table = PAGE.read_text().split("## Metrics\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `memorybus_")]
    names = re.findall(r"`(?:memorybus)?(_\w+)`", "".join(cells))
    return {f"memorybus{name}" for name in names}


def test_the_page_has_every_metric() -> None:
    """G10: what is told to Prometheus is said in words, under the names that it sees."""
    families = list(status_metrics(status(provider(), jobs=[JOBS]), "1", (), 0))
    suffix = {"counter": "_total", "info": "_info"}
    assert documented() == {f"{one.name}{suffix.get(one.type, '')}" for one in families}
