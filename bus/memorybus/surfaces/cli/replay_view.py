"""What ``memorybus replay`` would do, as people read it."""

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from memorybus.surfaces.render import grid
from memorybus.surfaces.safe import one_line

if TYPE_CHECKING:
    from memorybus.surfaces.replaying import Planned


def sentence(plan: "Planned") -> str:
    """Return what begins now."""
    goes_on = "goes on with" if plan.known else "fills"
    of = f"{plan.counted.events} events of {plan.instance.provider}"
    return f"{goes_on} {plan.instance.name}: {of}"


def told(plan: "Planned") -> Group:
    """Return a plan for people."""
    counted = plan.counted
    facts = grid("", "")
    facts.show_header = False
    for name, value in _facts(plan):
        facts.add_row(name, Text(one_line(value)))
    parts: list[Table | Text] = [facts, _counts("by type", counted.types)]
    parts.append(_counts(f"by key (of {counted.distinct_keys})", counted.keys))
    if counted.left_out:
        parts.append(_counts("left out", {_WHY[why]: n for why, n in counted.left_out.items()}))
    return Group(*parts)


_WHY = {
    "volatile": "volatile: not kept by the archive",
    "filtered": "not what was asked for",
    "retention": "older than it may be kept",
    "forgotten": "somebody wants it forgotten",
    "outside": "calls of tools that act on the world",
}


def _facts(plan: "Planned") -> list[tuple[str, str]]:
    counted = plan.counted
    home = plan.home
    by = "by the rate" if plan.instance.plan.rate else "at least: reading alone"
    what = f"{plan.instance.provider} ({plan.kind}, {plan.delivery})"
    return [
        ("copy", f"{plan.instance.name} of {what}"),
        ("begins", "goes on where it is" if plan.known else "fresh"),
        ("home", "shared" if home is None else f"{home.path} on {home.host}"),
        ("events", f"{counted.events}, {counted.without_effect} of them without effect there"),
        ("size", f"{counted.bytes / 1e6:.1f} MB"),
        ("time", f"{plan.least_seconds:.1f} s {by}"),
    ]


def _counts(what: str, counts: dict[str, int]) -> Table:
    table = grid(what, "events")
    for name, count in counts.items():
        table.add_row(Text(one_line(name)), str(count))
    return table
