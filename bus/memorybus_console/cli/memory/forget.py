"""``memorybus forget``: erase a person or an agent, and report what could not be erased."""

from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter

from memorybus_console.cli.options import DEFAULT, MEMORIES, Common, operator, positive
from memorybus_console.views.output import Output
from memorybus_console.views.render import grid
from memorybus_console.views.safe import one_line, visible

if TYPE_CHECKING:
    from memorybus_console.operations.forget import Erasure, ErasurePlan


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_forget, name="forget", group=MEMORIES)


def run_forget(
    *,
    user: Annotated[str | None, Parameter(help="This person.")] = None,
    agent: Annotated[
        str | None,
        Parameter(help="This agent; with --user, only that person with this agent."),
    ] = None,
    workspace: Annotated[str | None, Parameter(help="Only this workspace; '' for none.")] = None,
    reason: Annotated[str, Parameter(help="Why, for the record.")] = "",
    yes: Annotated[
        bool, Parameter(negative="", help="Do it; without, only say what would be erased.")
    ] = False,
    wait: Annotated[
        float,
        Parameter(help="Seconds to wait for lanes, and for each provider.", validator=positive),
    ] = 60.0,
    common: Common = DEFAULT,
) -> int:
    """Erase a person or an agent from the history, providers, dead letters and warm answers.

    Events up to now are hidden for good, so that no replay and no rebuild brings them back. Each
    provider erases what it keeps and reports what it cannot erase. Run the command again if
    anything is left to do. Later events are remembered as usual: first stop the agents that still
    talk to this person. Exit code 1 if something could not be done.

    For example:

    - `memorybus forget --user ana`
    - `memorybus forget --user ana --reason "asked on 3 May" --yes --json | jq .remains`
    """
    from memorybus_console.operations import forget

    output, settings = common.output(), common.settings()
    plan = forget.plan_erasure(settings, forget.ErasureOwner(user, agent, workspace))
    if not yes:
        _show_plan(output, plan)
        return 0
    with output.progress("steps") as bar:
        task = bar.add_task("forget", total=None)

        def step(what: str) -> None:
            bar.update(task, advance=1, description=one_line(what))

        done = forget.Eraser(settings, wait, step).erase(plan, reason, operator())
    _show(output, done)
    return 0 if done.whole else 1


def _show_plan(output: Output, plan: "ErasurePlan") -> None:
    found = plan.found
    if output.json:
        what = {"events": found.events, "sessions": found.session_count}
        asked = {"letters": len(plan.letters), "instances": list(plan.instances)}
        output.result({"executed": False, **what, **asked})
        return
    output.show(
        f"would hide {found.events} events of {found.session_count} sessions for good, and discard "
        f"{len(plan.letters)} dead letters"
    )
    output.show(visible(f"would ask these to erase: {', '.join(plan.instances)}"))
    output.note("nothing was done; add --yes to do it")


def _show(output: Output, done: "Erasure") -> None:
    if output.json:
        output.result({"executed": True, **msgspec.to_builtins(done)})
        return
    output.show(
        f"{done.events} events are hidden; {done.log.gone} entries of the log and {done.letters} "
        "dead letters are gone"
    )
    table = grid("provider", "erased", "left", texts=("left",))
    for one in done.instances:
        count = "-" if one.erased is None else str(one.erased)
        left = one.problem or "; ".join(one.remains) or "nothing that it knows of"
        table.add_row(one_line(one.name), "no" if one.problem else count, visible(left))
    output.show(table)
    for why in done.problems:
        output.note(why, "red")
    for what in done.remains:
        output.note(f"left: {what}", "yellow")
