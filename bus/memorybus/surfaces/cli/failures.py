"""How a command says that it failed: prose on stderr; with ``--json`` an object on stdout, too.

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
"""What a person has to write differently."""

_NEXT: tuple[tuple[type[Exception], str], ...] = (
    (AccessDenied, ""),
    (CycloptsError, "see the same command with --help"),
    (LogUnavailable, "start it with `memorybus up`, or find out more with `memorybus doctor`"),
    (SpoolFull, "see what waits with `memorybus status`, and let it drain with `memorybus up`"),
    (NoServerBinary, "or set MEMORYBUS_URL to a Redis that runs elsewhere"),
)
"""The advice of the first kind that fits; "" where the message has it."""


def wants_json(words: Sequence[str]) -> bool:
    """Say whether a command line asks for JSON, understood or not."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def failed(error: Exception, *, as_json: bool) -> int:
    """Tell people, and with `as_json` programs, of an error; return the exit code."""
    if isinstance(error, OSError) and error.filename is None:
        _forget_stdout()
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    if as_json:
        _tell_programs(error)
    if not isinstance(error, CycloptsError):  # told already, by who read the words
        complain(error)
    return USAGE if isinstance(error, _MISTAKEN) else FAILED


def complain(error: Exception) -> None:
    """Print an error as one message that ends with what to do next, where we know it."""
    text = Text.assemble(("error: ", "bold red"), visible(_said(error)))
    if advice := _advice(error):
        text.append(f"\n{advice}", style="dim")
    QuietPipeConsole(stderr=True, highlight=False).print(text, soft_wrap=True)


def _tell_programs(error: Exception) -> None:
    advice = _advice(error)
    told = {"error": type(error).__name__, "message": _said(error)}
    try:
        sys.stdout.write(json_text(told | ({"next": advice} if advice else {}), indent=None) + "\n")
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
    """Let the interpreter's last flush go nowhere instead of failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
