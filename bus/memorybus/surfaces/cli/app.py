"""The root command, errors and exit codes.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 130 interrupted (Ctrl-C), 141 the reader
of a pipe went away, 143 ended by SIGTERM.
"""

import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from cyclopts import App, CycloptsError
from rich.text import Text

from memorybus.errors import (
    ConfigError,
    LogUnavailable,
    MemoryBusError,
    MissingProvider,
    NoServerBinary,
    SpoolFull,
)
from memorybus.surfaces import signals
from memorybus.surfaces.cli import (
    archive,
    care,
    dlq,
    events,
    hermes,
    memories,
    provider,
    rebuild,
    replay,
    running,
    sessions,
    status,
    tools,
    verify,
)
from memorybus.surfaces.output import QuietPipeConsole
from memorybus.surfaces.safe import visible

OK, FAILED, USAGE, PIPE_CLOSED = 0, 1, 2, 141

_NEXT = (
    (LogUnavailable, "start it with `memorybus up`, or find out more with `memorybus doctor`"),
    (SpoolFull, "see what waits with `memorybus status`, and let it drain with `memorybus up`"),
    (NoServerBinary, "or set MEMORYBUS_URL to a Redis that runs elsewhere"),
)

_HELP = """The event-sourced memory bus for AI agents.

Begin with `memorybus demo`: the whole system on a real Redis in a few seconds. Then `memorybus up`
in one terminal and `memorybus ingest FILE`, `memorybus recall QUESTION` in another.
"""


def build() -> App:
    """Return the command line with all its groups."""
    app = App(
        name="memorybus",
        help=_HELP,
        version=f"memorybus {version('memorybus')}",
        help_format="markdown",
        version_format="plaintext",
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        result_action="return_value",
        console=QuietPipeConsole(),
        error_console=QuietPipeConsole(stderr=True),
    )
    for group in (
        running,
        memories,
        status,
        events,
        sessions,
        provider,
        dlq,
        tools,
        hermes,
        archive,
        rebuild,
        verify,
        replay,
        care,
    ):
        group.register(app)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no traceback ever reaches the user.

    Args:
        argv: the arguments without the program's name; the process's own if None.
    """
    signals.unwind_on_stop()
    if not _streams_are_open():
        return FAILED
    try:
        code = build()(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return signals.INTERRUPTED
    except (CycloptsError, MemoryBusError, OSError) as error:
        return _failed(error)
    return code if isinstance(code, int) else OK


def _failed(error: Exception) -> int:
    """Tell people of an error, unless that is done or nobody listens; return the exit code."""
    if isinstance(error, CycloptsError):
        return USAGE
    if isinstance(error, OSError):
        _forget_stdout()
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    complain(error)
    return USAGE if isinstance(error, ConfigError | MissingProvider) else FAILED


def _streams_are_open() -> bool:
    """Say whether there is anywhere to print to; a closed stderr is only a silent one."""
    out: object = sys.stdout
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    if out is None:
        sys.stderr.write("error: standard output is closed\n")
    return out is not None


def complain(error: Exception) -> None:
    """Print an error as one message that ends with what to do next, where we know it."""
    text = Text.assemble(("error: ", "bold red"), visible(_said(error)))
    for kind, advice in _NEXT:
        if isinstance(error, kind):
            text.append(f"\n{advice}", style="dim")
    QuietPipeConsole(stderr=True, highlight=False).print(text, soft_wrap=True)


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'standard output'}: {error.strerror or error}"
    return str(error)


def _forget_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
