"""Shows which part of the history a replay or a rebuild would use."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memorybus.text.display import format_duration, format_size
from rich.console import Group
from rich.table import Table
from rich.text import Text

from memorybus_console.views.render import grid
from memorybus_console.views.safe import one_line

if TYPE_CHECKING:
    from memorybus_console.operations.copies.counting import HistoryCount

_WHY: Mapping[str, str] = {
    "volatile": "volatile: not kept by the archive",
    "filtered": "not selected",
    "retention": "older than the retention",
    "forgotten": "forgotten on request",
    "outside": "calls of tools that act on the world",
    "until": "outside the chosen time (--until, or added late)",
    "except_session": "--except-session",
    "except_user": "--except-user",
    "except_agent": "--except-agent",
    "except_origin": "--except-origin",
}


def plan_group(facts: Mapping[str, str], counted: "HistoryCount | None") -> Group:
    """Return a plan: its facts, and the counts of events."""
    table = grid("", " ", texts=(" ",))
    table.show_header = False
    for name, value in facts.items():
        table.add_row(name, Text(one_line(value)))
    parts = [table]
    if counted is not None and counted.events:
        parts.append(_count_table("by type", counted.types))
        parts.append(_count_table(f"by key (of {counted.distinct_keys})", counted.keys))
    if counted is not None and counted.left_out:
        parts.append(
            _count_table("left out", {_WHY[why]: n for why, n in counted.left_out.items()})
        )
    return Group(*parts)


def _count_table(what: str, counts: Mapping[str, int]) -> Table:
    table = grid(what, "events")
    for name, count in counts.items():
        table.add_row(Text(one_line(name)), str(count))
    return table


def amount_facts(counted: "HistoryCount", seconds: float, by: str) -> dict[str, str]:
    """Return what was counted as facts: events, size, the least time and what it depends on."""
    idle = counted.without_effect
    without = f", {idle} of them without effect on this provider" if idle else ""
    return {
        "events": f"{counted.events}{without}",
        "size": format_size(counted.bytes),
        "time": f"{time_text(seconds)} {by}",
    }


def time_text(seconds: float) -> str:
    """Return a time span as people read it."""
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.1f} seconds" if seconds < 10 else format_duration(seconds)
