"""Shows people what ``memorybus replay`` would do, and the copies."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from memorybus_console.views import plan as plan_view
from memorybus_console.views.render import grid
from memorybus_console.views.safe import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memorybus_console.operations.copies.copies import Copy
    from memorybus_console.operations.copies.replay import ReplayPlan


def describe_start(plan: "ReplayPlan") -> str:
    """Return in words what begins now."""
    verb = "continues to fill" if plan.known else "fills"
    return f"{verb} {plan.instance.name} of {plan.instance.provider}: {_places(plan)}"


def describe_plan(plan: "ReplayPlan") -> Table:
    """Return a plan for people."""
    home = plan.home
    what = f"{plan.instance.provider} ({plan.kind}, {plan.delivery})"
    facts = {
        "copy": f"{plan.instance.name} of {what}",
        "begins": "continues where it stopped" if plan.known else "from an empty state",
        "home": "shared" if home is None else f"{home.path} on {home.host}",
    }
    facts |= _moments(plan)
    if plan.instance.plan.rate:
        facts["rate"] = f"{plan.instance.plan.rate:g} events a second at most"
    return plan_view.facts_table(facts | {"history": _places(plan)})


def _places(plan: "ReplayPlan") -> str:
    return f"{plan.total} places of the history"


def _moments(plan: "ReplayPlan") -> dict[str, str]:
    from memorybus_console.operations.moments import moment_text

    asked = plan.instance.asked
    kept = {"from": asked.since, "until": asked.until} if asked else {}
    return {name: moment_text(moment) for name, moment in kept.items() if moment}


def table(found: "Sequence[Copy]") -> Table:
    """Return copies as a table."""
    table = grid(
        "copy", "of", "for", "state", "events", "parked", "home", "reason", texts=("reason",)
    )
    for one in found:
        cells = (
            one.name,
            one.provider,
            one.purpose,
            one.state,
            _progress_text(one),
            str(one.parked),
        )
        table.add_row(*(Text(one_line(cell)) for cell in (*cells, one.home or "", one.reason)))
    return table


def _progress_text(one: "Copy") -> str:
    return f"{one.done}/{one.total}" if one.total is not None else f"{one.done}, and continues"
