"""The root command, errors and exit codes.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 130 interrupted (Ctrl-C), 141 the reader
of a pipe went away, 143 ended by SIGTERM. `check` returns the codes of monitoring plugins instead.
"""

import io
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version

from cyclopts import App, CycloptsError
from memorybus.errors import MemoryBusError
from memorybus.processes import signals
from memorybus_workers import logs

from memorybus_console.cli import (
    check,
    config,
    doctor,
    hooks,
    insights,
    keys,
    mcp,
    processes,
    schema,
    serving,
    status,
    tools,
    top,
)
from memorybus_console.cli.dead_letters import dlq
from memorybus_console.cli.events import events, ingest, sessions
from memorybus_console.cli.failures import FAILED, report_failure, wants_json
from memorybus_console.cli.hermes import commands as hermes
from memorybus_console.cli.history import archive, rebuild, replay, verify
from memorybus_console.cli.memory import curator, export, forget, memories, recall
from memorybus_console.cli.options import OPERATE
from memorybus_console.cli.providers import provider_life
from memorybus_console.views.output import QuietPipeConsole

OK = 0

_HELP = """The event-sourced memory bus for AI agents.

Begin with `memorybus demo`: the whole system on a real Redis in a few seconds. Then `memorybus up`
in one terminal; it prints what to do in another.
"""


_GROUPS = (
    processes,
    serving,
    keys,
    mcp,
    hooks,
    ingest,
    recall,
    memories,
    curator,
    export,
    forget,
    status,
    top,
    check,
    insights,
    events,
    sessions,
    provider_life,
    dlq,
    tools,
    hermes,
    archive,
    config,
    rebuild,
    verify,
    replay,
    doctor,
    schema,
)
"""The modules with the commands, in the order of the help."""


@cache
def build_app() -> App:
    """Return the command line with all its groups, built once in a process."""
    app = App(
        name="memorybus",
        help=_HELP,
        version=lambda: f"memorybus {version('memorybus')}",  # it takes 6 ms, and is rare
        help_format="markdown",
        version_format="plaintext",
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        result_action="return_value",
        console=QuietPipeConsole(),
        error_console=QuietPipeConsole(stderr=True),
    )
    for group in _GROUPS:
        group.register(app)
    app.register_install_completion_command(name="completion", group=OPERATE)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no traceback ever reaches the user.

    Args:
        argv: the arguments without the program's name; the process's own if None.
    """
    if not _streams_are_open():
        return FAILED
    if argv is None:  # a caller with words of its own has its own logging
        logs.set_up(level="warning")
    words = sys.argv[1:] if argv is None else list(argv)
    _show_any_text()
    try:
        signals.unwind_on_stop()
        with signals.lost_stops_repeated():
            code = build_app()(words)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return signals.INTERRUPTED
    except (CycloptsError, MemoryBusError, OSError) as error:
        return _report_failure(error, words)
    return code if isinstance(code, int) else OK


def _report_failure(error: Exception, words: Sequence[str]) -> int:
    """Report an error and return its exit code; wrong usage of `check` has a plugin's code."""
    as_json = wants_json(words)
    if isinstance(error, CycloptsError) and check.is_check(words):
        return check.report_misuse(error, as_json=as_json)
    return report_failure(error, as_json=as_json)


def _show_any_text() -> None:
    """Escape what a terminal of another encoding cannot show (LANG=C), instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _streams_are_open() -> bool:
    """Return whether stdout is open; a closed stderr is replaced by one that discards its text."""
    out: object = sys.stdout
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    if out is None:
        sys.stderr.write("error: standard output is closed\n")
    return out is not None
