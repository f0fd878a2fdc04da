"""The command line: it reads arguments, calls an operation and shows the result by a view.

It imports operations, views, the client, health and child processes, most of them only when a
command runs. The entry point ``memorybus`` calls it.
"""

from collections.abc import Sequence

from memorybus.processes import garbage, signals
from memorybus.processes.lean import without_opentelemetry


def main(argv: Sequence[str] | None = None) -> int:
    """Load the commands, run one and return its exit code; no traceback ever reaches the user.

    Args:
        argv: the arguments without the program's name; the process's own if None.
    """
    signals.end_on_stop()
    garbage.collect_seldom()
    garbage.end_without_collecting()
    from memorybus_console.cli.app import main as run

    with without_opentelemetry():
        return run(argv)
