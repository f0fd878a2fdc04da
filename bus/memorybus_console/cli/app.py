"""The root command, errors and exit codes.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 130 interrupted (Ctrl-C), 141 the reader
of a pipe went away, 143 ended by SIGTERM. `check` returns the codes of monitoring plugins instead.
"""

import io
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from cyclopts import App, CycloptsError, Group
from memorybus.errors import MemoryBusError
from memorybus.processes import signals
from memorybus_workers import logs

from memorybus_console.cli import check
from memorybus_console.cli.failures import FAILED, report_failure, wants_json
from memorybus_console.cli.options import INSPECT, MEMORIES, OPERATE, RUN
from memorybus_console.views.output import QuietPipeConsole

OK = 0

_HELP = """The event-sourced memory bus for AI agents.

Begin with `memorybus demo`: the whole system on a real Redis in a few seconds. Then `memorybus up`
in one terminal; it prints what to do in another.
"""


_COMMANDS = (
    (RUN, "processes:run_", "demo up worker"),
    (RUN, "serving:run_", "serve"),
    (RUN, "mcp:run_", "mcp"),
    (RUN, "hooks:run_", "hook"),
    (MEMORIES, "events.ingest:run_", "ingest"),
    (MEMORIES, "memory.recall:run_", "recall"),
    (MEMORIES, "memory.export:run_", "export"),
    (MEMORIES, "memory.forget:run_", "forget"),
    (INSPECT, "status:run_", "status"),
    (INSPECT, "top:run_", "top"),
    (INSPECT, "check:run_", check.NAME),
    (INSPECT, "insights:run_", "insights"),
    (INSPECT, "events.events:run_", "whatif"),
    (OPERATE, "history.verify:run_", "verify diff"),
    (OPERATE, "doctor:run_", "doctor"),
    (OPERATE, "schema:run_", "schema"),
    ("key", "keys:run_key_", "create list revoke"),
    ("claude", "hooks:run_claude_", "install uninstall"),
    ("codex", "hooks:run_codex_", "install uninstall"),
    ("memories", "memory.memories:run_", "people list correct delete"),
    ("curator", "memory.curator:run_", "run status report pin unpin accept reject undo"),
    ("events", "events.events:run_events_", "ls tail get search"),
    ("sessions", "events.sessions:run_sessions_", "tree"),
    ("provider", "providers.provider_life:run_", "ls move test pause resume retry-now remove"),
    ("provider", "providers.provider_setup:run_", "setup"),
    ("dlq", "dead_letters.dlq:run_dlq_", "ls show retry edit discard"),
    ("tools", "tools:run_", "ls call"),
    ("hermes", "hermes.commands:run_", "install setup uninstall status reconcile"),
    ("archive", "history.archive:run_archive_", "run ls verify export import"),
    ("config", "config:run_config_", "show reference page-token"),
)
"""All commands: a panel of the help or a group, how their functions' paths begin, their names."""

_GROUPS = (
    ("key", OPERATE, "Keys for agents that use `memorybus serve --api`."),
    ("claude", OPERATE, "The bus as memory of Claude Code."),
    ("codex", OPERATE, "The bus as memory of Codex."),
    ("memories", MEMORIES, "List and correct what is remembered about a person."),
    ("curator", MEMORIES, "Let memories age that nobody uses."),
    ("events", INSPECT, "The log: what was published, in order."),
    ("sessions", INSPECT, "Sessions and how they came from each other."),
    ("provider", OPERATE, "Provider instances and their homes."),
    ("dlq", OPERATE, "Dead letters: what a provider refused for good."),
    ("tools", MEMORIES, "The tools that providers offer a model."),
    ("hermes", OPERATE, "The bus as memory of Hermes Agent."),
    ("archive", OPERATE, "The sealed past of the log, outside Redis."),
    ("config", OPERATE, "Settings, and where they come from."),
)
_WITH_DEFAULTS = {"rebuild": "history.rebuild:APP", "replay": "history.replay:APP"}
"""The groups that do something by themselves."""


class _Root(App):
    """The root command. Its help imports the modules of the commands that it lists."""

    def help_print(self, *args: Any, **options: Any) -> None:
        for command in self.resolved_commands().values():
            command.resolved_commands()
        super().help_print(*args, **options)


@cache
def build_app() -> App:
    """Return the command line with all its groups, built once in a process."""
    app = _Root(
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
    groups = {name: App(name=name, help=text, group=panel) for name, panel, text in _GROUPS}
    for group in groups.values():
        app.command(group)
    for where, stem, names in _COMMANDS:
        parent, panel = (app, where) if isinstance(where, Group) else (groups[where], None)
        for name in names.split():  # imported only for its help, or to run it
            path = f"{__package__}.{stem}{name.replace('-', '_')}"
            parent.command(path, name=name, group=panel)
    for name, path in _WITH_DEFAULTS.items():
        app.command(f"{__package__}.{path}", name=name, group=OPERATE)
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
