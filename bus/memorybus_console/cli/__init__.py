"""The command line: it reads arguments, calls an operation and shows the result by a view.

It imports operations, views, the client, health and child processes, most of them only when a
command runs. The entry point ``memorybus`` calls it. Whatever `MemoryBusError` a command raises,
`failures` shows it.
"""

import sys
from collections.abc import Sequence

from memorybus.processes import light_imports, signals
from memorybus.processes.light_imports import without_opentelemetry

_LIBRARIES = ("cyclopts", "rich", "structlog", "tomlkit")
"""What commands need of the extra `standard`; an agent's process does without."""

_MISSING = (
    "memorybus: commands and workers need {library}, which is not installed here; "
    "run: {python} -m {install}"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Load the commands, run one and return its exit code; no traceback ever reaches the user.

    Args:
        argv: the arguments without the program's name; the process's own if None.
    """
    signals.end_on_stop()
    light_imports.collect_seldom()
    light_imports.end_without_collecting()
    try:
        from memorybus_console.cli.app import main as run
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        from memorybus.errors import install_command

        sys.exit(
            _MISSING.format(
                library=error.name, python=sys.executable, install=install_command("standard")
            )
        )
    with without_opentelemetry():
        return run(argv)
