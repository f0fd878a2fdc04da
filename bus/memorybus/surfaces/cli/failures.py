"""How a command reports that it failed: prose on stderr; with ``--json`` also an object on stdout.

The object reads ``{"error": kind, "message": what and why, "next": what to do}``, on one line;
``next`` is missing where the message says it.
"""

import os
import sys
from collections.abc import Sequence

from cyclopts import CycloptsError
from rich.text import Text

from memorybus.errors import (
    AccessDenied,
    ConfigError,
    LogUnavailable,
    MissingProvider,
    NoServerBinary,
    SpoolFull,
)
from memorybus.surfaces.views.output import QuietPipeConsole
from memorybus.surfaces.views.safe import json_text, visible
from memorybus.text.redact import masked

FAILED, USAGE, PIPE_CLOSED = 1, 2, 141

_MISTAKEN = (AccessDenied, ConfigError, CycloptsError, MissingProvider)
"""Errors in what the user wrote: exit code 2."""

_NEXT: tuple[tuple[type[Exception], str], ...] = (
    (AccessDenied, ""),
    (CycloptsError, "see the same command with --help"),
    (LogUnavailable, "start it with `memorybus up`, or find out more with `memorybus doctor`"),
    (SpoolFull, "see what waits with `memorybus status`, and let it drain with `memorybus up`"),
    (NoServerBinary, "or set MEMORYBUS_URL to a Redis that runs elsewhere"),
)
"""Advice by kind of error, the first that fits; "" where the message has its own."""


def wants_json(words: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, even if it cannot be parsed."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def failed(error: Exception, *, as_json: bool) -> int:
    """Report an error to people, with `as_json` also to programs; return the exit code."""
    if isinstance(error, OSError) and error.filename is None:
        _forget_stdout()
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    if as_json:
        _print_json(error)
    if not isinstance(error, CycloptsError):  # the parser has reported it already
        complain(error)
    return USAGE if isinstance(error, _MISTAKEN) else FAILED


def complain(error: Exception) -> None:
    """Print an error as one message, which ends with what to do next if we know that."""
    text = Text.assemble(("error: ", "bold red"), visible(_said(error)))
    if advice := _advice(error):
        text.append(f"\n{advice}", style="dim")
    QuietPipeConsole(stderr=True, highlight=False).print(text, soft_wrap=True)


def _print_json(error: Exception) -> None:
    advice = _advice(error)
    report = {"error": type(error).__name__, "message": _said(error)}
    try:
        sys.stdout.write(
            json_text(report | ({"next": advice} if advice else {}), indent=None) + "\n"
        )
        sys.stdout.flush()
    except OSError:
        _forget_stdout()


def _advice(error: Exception) -> str:
    return next((advice for kind, advice in _NEXT if isinstance(error, kind)), "")


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        return masked(f"{error.filename or 'standard output'}: {error.strerror or error}")
    return masked(str(error))


def _forget_stdout() -> None:
    """Point stdout to nowhere, so that the interpreter's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
