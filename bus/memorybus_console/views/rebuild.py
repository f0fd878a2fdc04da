"""Shows people the plans, results and generations of ``memorybus rebuild``."""

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from memorybus_console.views import plan as plan_view
from memorybus_console.views.output import NOTHING_DONE, Output
from memorybus_console.views.render import grid
from memorybus_console.views.safe import one_line, visible

if TYPE_CHECKING:
    from memorybus.query.query import Query
    from memorybus.query.ranges import Plan

    from memorybus_console.operations.copies.generations import Generation
    from memorybus_console.operations.rebuild.drop import Drop
    from memorybus_console.operations.rebuild.plan import RebuildPlan
    from memorybus_console.operations.rebuild.rebuild import RebuildResult


_KEPT = {
    "history": "what {live} leaves out stays out (--whole takes all)",
    "options": "the options of {live} stay (--set changes one)",
}


def show_intent(output: Output, plan: Any, said: str) -> int:
    """Show a plan as JSON, or what it would do as the text `said`; return the exit code."""
    if output.json:
        output.result(plan)
    else:
        output.show(visible(said))
        output.note(NOTHING_DONE, "yellow")
    return 0


def show_plan(output: Output, found: "RebuildPlan") -> int:
    """Show a rebuild that could begin; return the exit code."""
    if output.json:
        output.result(found)
        return 0
    from memorybus_console.operations.rebuild.carry_out import describe_unserved

    output.show(plan_view.facts_table(_facts(found)))
    if not found.served:
        output.note(describe_unserved(found.instance.provider), "yellow")
    output.note(NOTHING_DONE, "yellow")
    return 0


def _facts(found: "RebuildPlan") -> dict[str, str]:
    from memorybus_console.operations.moments import moment_text

    one = found.instance
    step = "serves already; its end is missing" if found.swapped else "continues where it stopped"
    facts = {
        "generation": f"{one.name}, beside {found.live}",
        "begins": step if found.known else "from an empty state",
        "history": _describe_span(one.plan) + _describe_exceptions(one.plan.query),
        "options": ", ".join(f"{k}={v}" for k, v in one.options.items()) or "as they are",
        "compared": "by digest with the live one" if found.compared else "by counts only",
    }
    if one.asked is not None and one.asked.until:
        facts["until"] = moment_text(one.asked.until)
    if found.kept:
        facts["kept"] = "; ".join(_KEPT[what] for what in found.kept).format(live=found.live)
    return facts


def _describe_span(plan: "Plan") -> str:
    if any(len(spans) > 1 for spans in plan.spans.values()):
        return "up to a moment, and from a later one on"
    return "from a moment on" if plan.spans else "all"


def _describe_exceptions(query: "Query") -> str:
    groups = (
        ("sessions", query.except_sessions),
        ("users", query.except_users),
        ("agents", query.except_agents),
        ("origins", query.except_origins),
    )
    said = [f"{name} {', '.join(words)}" for name, words in groups if words]
    return f", without {'; '.join(said)}, now and in future" if said else ""


def show_result(output: Output, done: "RebuildResult") -> int:
    """Show the result of a rebuild or a rollback; return the exit code."""
    if output.json:
        output.result(done)
        return 0
    output.show(visible(f"{done.live} serves {done.provider}; {_describe_comparison(done)}"))
    seconds = done.paused_ms / 1000
    pause = f"its lanes paused for {seconds:.1f} s" if seconds else "its lanes did not pause"
    output.note(f"{pause}; {done.purged} warm answers are fetched again")
    if done.parked:
        output.note(f"{done.parked} events are parked: memorybus dlq ls", "yellow")
    if done.previous:
        output.note(
            f"{done.previous} is kept, without new events: memorybus rebuild --rollback "
            f"{done.provider} goes back to it, --drop {done.provider} removes it"
        )
    return 0


def _describe_comparison(done: "RebuildResult") -> str:
    found = done.compared
    if found is None or not found.given:
        return "at the same position of the history as the previous one"
    same = f"{found.keys - found.differing} of {found.keys} keys equal"
    return f"digests compared: {same}"


def table(found: "list[Generation]") -> Table:
    """Return generations as a table."""
    table = grid(
        "generation",
        "of",
        "state",
        "history",
        "options",
        "by",
        "reason",
        texts=("history", "options", "reason"),
    )
    for one in found:
        history = "an earlier time" if one.until_then else "all"
        options = ", ".join(f"{name}={value}" for name, value in one.options.items())
        cells = (
            *(one.name, one.provider, one.state, history + _describe_exceptions(one.query)),
            *(options, one.made_by, one.reason),
        )
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    return table


def describe_drop(what: "Drop") -> str:
    """Return in words which generations a drop removes, and which stay."""
    stays = f"{what.live} and {what.kept} stay" if what.kept else f"{what.live} stays"
    places = {name: what.shared[name] for name in what.dropped if name in what.shared}
    shared = [f"{name} ({place})" if place else name for name, place in places.items()]
    state = (
        f", but not the state in the backend of {', '.join(shared)}: delete it there before that "
        f"place is used again"
        if shared
        else " with all state"
    )
    return f"{', '.join(what.dropped)}{state}; {stays}"
