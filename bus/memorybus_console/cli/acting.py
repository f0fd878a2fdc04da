"""Carries out an action from the command line: shows the plan and asks first, unless --yes."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

from memorybus_console.cli.options import Common, operator
from memorybus_console.cli.progress import show_bar
from memorybus_console.cli.providers.dialogue import Dialogue
from memorybus_console.views.output import Output
from memorybus_console.views.presenter import present

if TYPE_CHECKING:
    from collections.abc import Callable

    from memorybus_console.actions.action import Action

P = TypeVar("P")
R = TypeVar("R")

YesOption = Annotated[
    bool,
    Parameter(
        name="--yes",
        negative="",
        help="Do it without asking. Otherwise the plan is shown, and a person at a terminal asked.",
    ),
]

ReasonOption = Annotated[
    str, Parameter(help="Reason, written to the log; asked for at a terminal.")
]

WAIT_SECONDS = 60.0
"""Seconds to wait for workers."""

NOTHING_CHANGED = "interrupted: nothing was changed"

SAME_AGAIN = "interrupted: the same command does what is left"


def act(
    action: "Action[P, R]",
    common: Common,
    *,
    yes: bool = False,
    wait: float = WAIT_SECONDS,
    interrupted: str = SAME_AGAIN,
    show_plan: "Callable[[Output, Any], Any]" = present,
) -> "P | R | None":
    """Carry an action out, or return its plan; a person at a terminal decides between the two.

    Args:
        wait: the most seconds to wait for workers.

    Returns:
        The plan if nothing is to be done; None if that was shown already; else the result.
    """
    from memorybus_console.actions.action import Ground, perform

    output, settings = common.output(), common.settings()
    if not yes and not action.is_harmless:
        with show_bar(output, "plan", "", NOTHING_CHANGED) as progress:
            plan = action.plan(Ground(settings, operator(), wait, progress))
        if not _is_person_there(output):
            return plan
        show_plan(output, plan)
        if not Dialogue(output.err).confirm(action.question(), default=False):
            output.note("nothing was done")
            return None
        if not action.reason:
            optional = "" if action.needs_reason else " (optional)"
            reason = Dialogue(output.err).ask(f"Reason, written to the log{optional}")
            action = replace(action, reason=reason)
    with show_bar(output, action.title, "", interrupted) as progress:
        return perform(action, Ground(settings, operator(), wait, progress))


def _is_person_there(output: Output) -> bool:
    return output.is_live and sys.stdin.isatty()
