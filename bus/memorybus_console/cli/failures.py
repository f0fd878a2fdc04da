"""How a command reports, on stderr, how far it is and that it failed.

With ``--json`` a failure is also an object on stdout, on one line:
``{"error": kind, "message": what and why, "next": what to do}``. ``next`` is missing where the
message itself has it.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NotRequired, TypedDict

from cyclopts import CycloptsError
from memorybus.clock import Clock
from memorybus.errors import (
    AccessDenied,
    ConfigError,
    LogUnavailable,
    MissingProvider,
    NoServerBinary,
    SpoolFull,
)
from memorybus.text.display import visible
from memorybus.text.redact import masked
from rich.text import Text

from memorybus_console.views.output import Output, QuietPipeConsole
from memorybus_console.views.render import json_text

if TYPE_CHECKING:
    from memorybus_console.operations.ingest.report import StageStep

FAILED, USAGE, PIPE_CLOSED = 1, 2, 141

_USER_ERRORS = (AccessDenied, ConfigError, CycloptsError, MissingProvider)
"""Errors in what the user wrote: exit code 2."""

_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (CycloptsError, "see the same command with --help"),
    (SpoolFull, "see what waits with `memorybus status`, and let it drain with `memorybus up`"),
    (NoServerBinary, "or set MEMORYBUS_URL to a Redis that runs elsewhere"),
)
"""What to do, by kind of error; the first entry that fits counts. "" if the message says it.

An error of Redis brings its own remedy."""


class Failed(TypedDict):
    """What any command prints when it fails: the error's kind, its message, and what to do."""

    error: str
    message: str
    next: NotRequired[str]


def wants_json(words: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, even if it cannot be parsed."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def report_failure(error: Exception, *, as_json: bool) -> int:
    """Print an error on stderr, with `as_json` also as JSON on stdout; return the exit code."""
    if isinstance(error, OSError) and error.filename is None:
        _silence_stdout()
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    if as_json:
        _print_json(error)
    if not isinstance(error, CycloptsError):  # the parser has reported it already
        print_error(error)
    return USAGE if isinstance(error, _USER_ERRORS) else FAILED


def print_error(error: Exception) -> None:
    """Print an error as one message, followed by what to do next if that is known."""
    text = Text.assemble(("error: ", "bold red"), visible(_message(error)))
    if advice := _advice(error):
        text.append(f"\n{advice}", style="dim")
    QuietPipeConsole(stderr=True, highlight=False).print(text, soft_wrap=True)


def _print_json(error: Exception) -> None:
    advice = _advice(error)
    report = {"error": type(error).__name__, "message": _message(error)}
    try:
        sys.stdout.write(
            json_text(report | ({"next": advice} if advice else {}), indent=None) + "\n"
        )
        sys.stdout.flush()
    except OSError:
        _silence_stdout()


def _advice(error: Exception) -> str:
    if isinstance(error, LogUnavailable):
        return error.remedy
    return next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")


def _message(error: Exception) -> str:
    if isinstance(error, OSError):
        return masked(f"{error.filename or 'standard output'}: {error.strerror or error}")
    return masked(error.problem if isinstance(error, LogUnavailable) else str(error))


def _silence_stdout() -> None:
    """Point stdout to nowhere, so that the interpreter's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


LINE_INTERVAL = 5.0  # seconds between lines of progress where there is no terminal


@contextmanager
def show_bar(
    output: Output, what: str, unit: str, interrupted: str
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar, and yield a function that updates it.

    The function takes the step, how much is done, and the total (0 if it is unknown).

    Args:
        interrupted: the note on Ctrl-C and SIGTERM.
    """
    with note_on_interrupt(output, interrupted), output.progress(unit) as bar:
        task = bar.add_task(what, total=None)

        def tell(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total or None)

        yield tell


@contextmanager
def show_stage(
    output: Output, what: str, unit: str, total: int | None = None
) -> "Iterator[StageStep]":
    """Show the progress bar of one stage, and yield a function that advances it.

    Args:
        total: how many there are; None if that is unknown.
    """
    with output.progress(unit) as bar:
        task = bar.add_task(what, total=total)

        def step(count: int = 1, /) -> None:
            bar.advance(task, count)

        yield step


@contextmanager
def note_on_interrupt(output: Output, text: str) -> Iterator[None]:
    """Print a note when Ctrl-C or SIGTERM ends the block."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        output.note(text, "yellow")
        raise


class LineSchedule:
    """Decides when to print a line: at once, every `LINE_INTERVAL` seconds, and at the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.monotonic()

    def is_due(self, *, last: bool) -> bool:
        """Return whether to print a line now; the last one is always due."""
        now = self._clock.monotonic()
        if now < self._next and not last:
            return False
        self._next = now + LINE_INTERVAL
        return True
