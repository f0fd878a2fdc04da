"""Shows what a replay or a rebuild would take of the history."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from memorybus.log.forecast import format_duration, format_size
from memorybus.surfaces.views.render import grid
from memorybus.surfaces.views.safe import one_line

if TYPE_CHECKING:
    from memorybus.operations.copies.counting import HistoryCount

_WHY: Mapping[str, str] = {
    "volatile": "volatile: not kept by the archive",
    "filtered": "not what was asked for",
    "retention": "older than it may be kept",
    "forgotten": "somebody wants it forgotten",
    "outside": "calls of tools that act on the world",
    "until": "outside its time (--until, or added late)",
    "except_session": "--except-session",
    "except_user": "--except-user",
    "except_agent": "--except-agent",
    "except_origin": "--except-origin",
}


def shown(facts: Mapping[str, str], counted: "HistoryCount | None") -> Group:
    """Return a plan: what it is, and what was counted."""
    table = grid("", " ", texts=(" ",))
    table.show_header = False
    for name, value in facts.items():
        table.add_row(name, Text(one_line(value)))
    parts = [table]
    if counted is not None and counted.events:
        parts.append(_counts("by type", counted.types))
        parts.append(_counts(f"by key (of {counted.distinct_keys})", counted.keys))
    if counted is not None and counted.left_out:
        parts.append(_counts("left out", {_WHY[why]: n for why, n in counted.left_out.items()}))
    return Group(*parts)


def _counts(what: str, counts: Mapping[str, int]) -> Table:
    table = grid(what, "events")
    for name, count in counts.items():
        table.add_row(Text(one_line(name)), str(count))
    return table


def amounts(counted: "HistoryCount", seconds: float, by: str) -> dict[str, str]:
    """Return the facts of what was counted: events, size, and the least time, with its reason."""
    idle = counted.without_effect
    without = f", {idle} of them without effect there" if idle else ""
    return {
        "events": f"{counted.events}{without}",
        "size": format_size(counted.bytes),
        "time": f"{lasting(seconds)} {by}",
    }


def lasting(seconds: float) -> str:
    """Return a time span as people read it; none is shown as nothing."""
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.1f} seconds" if seconds < 10 else format_duration(seconds)
