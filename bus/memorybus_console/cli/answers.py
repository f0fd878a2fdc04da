"""Shows what a command returns, as its return type says."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from memorybus_console.cli.options import DEFAULT
from memorybus_console.result import IfEmpty, Presentation, Result, Stepwise
from memorybus_console.views.output import NOTHING_DONE, Output
from memorybus_console.views.presenter import json_of, parts_of, present


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
    """Return the note that stands for an empty list."""
    given = getattr(hint, "__metadata__", ())
    return next((each.text for each in given if isinstance(each, IfEmpty)), "")
