"""Shows what a command returns, as its return type says, and carries out what it changes."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

from memorybus_console.cli.failures import show_bar
from memorybus_console.cli.options import DEFAULT, Common, operator
from memorybus_console.cli.providers.dialogue import Dialogue
from memorybus_console.result import IfEmpty, Presentation, Result, Stepwise
from memorybus_console.views.output import NOTHING_DONE, Output
from memorybus_console.views.presenter import json_of, parts_of, present

if TYPE_CHECKING:
    from memorybus_console.actions.action import Action


def shown(command: Callable[..., Any]) -> Callable[..., int]:
    """Make a command of a function that returns a struct, a list of structs, or an iterator.

    The command shows what the function returns, if it is not None, and returns the exit code. A
    function that shows its results itself returns an exit code, and `Prints` names their type.
    """
    annotations = dict(command.__annotations__)
    if_empty = _note_if_empty(annotations.pop("return"))

    @wraps(command)
    def run(*args: Any, **options: Any) -> int:
        answer = command(*args, **options)
        output = options.get("common", DEFAULT).output()
        return 0 if answer is None else _show(output, answer, if_empty)

    run.__annotations__ = annotations  # the parser needs no types of results, which load slowly
    return run


def _show(output: Output, answer: Any, if_empty: str) -> int:
    if isinstance(answer, int):
        return answer
    if isinstance(answer, Stepwise):
        answer = _finish(output, answer)
    if isinstance(answer, Iterator):
        for each in answer:
            show_line(output, each)
        return 0
    code = present(output, answer, if_empty)
    if isinstance(answer, Result) and answer.is_plan() and not output.json:
        output.note(NOTHING_DONE, "yellow")
    return code


def _finish(output: Output, answer: Stepwise[Any]) -> Presentation[Any]:
    """Show each part of a value when it is known; return the value."""
    while True:
        try:
            part = next(answer.parts)
        except StopIteration as end:
            whole: Presentation[Any] = end.value
            return whole
        if not output.json:
            output.show(part)


def show_line(output: Output, answer: Any) -> None:
    """Show one of many answers; with JSON on a line of its own."""
    if output.json:
        output.json_line(json_of(answer))
    else:
        for part in parts_of(answer):
            output.show(part)


def _note_if_empty(hint: Any) -> str:
    given = getattr(hint, "__metadata__", ())
    return next((each.text for each in given if isinstance(each, IfEmpty)), "")


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

WAIT_SECONDS = 60.0  # seconds to wait for workers

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
