"""``memorybus check``: one line and an exit code, for monitoring plugins."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError

from memorybus.clock import SYSTEM
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.surfaces.cli.options import DEFAULT, LOOK, Common
from memorybus.surfaces.views.output import Output

if TYPE_CHECKING:
    from memorybus.health.verdict import Verdict

NAME = "check"


def register(app: App) -> None:
    """Add this command."""
    app.command(run_check, name=NAME, group=LOOK)


def run_check(*, common: Common = DEFAULT) -> int:
    """Say in one line whether all is well, as Nagios, Icinga and their like want it.

    It reads and changes nothing. Exit codes: 0 all is well, 1 a warning, 2 something critical (so
    is a Redis that is away or refuses us), 3 unknown, because settings or options are wrong.

    For example:

    - `memorybus check`
    - `memorybus check --json | jq '.findings[].remedy'`
    """
    from memorybus.health.monitor import read_status, spool_status
    from memorybus.health.verdict import judge_status, unknown_verdict, unreachable_verdict

    try:
        settings = common.settings()
        try:
            status = read_status(settings)
            found = judge_status(status, settings.providers, SYSTEM.now_ms())
        except LogUnavailable as error:
            found = unreachable_verdict(error, spool_status(settings))
    except MemoryBusError as error:
        found = unknown_verdict(error)
    return print_verdict(common.output(), found)


def is_check(words: Sequence[str]) -> bool:
    """Say whether a command line calls `check`, even if it cannot be parsed."""
    return list(words[:1]) == [NAME]


def report_misuse(error: CycloptsError, *, as_json: bool) -> int:
    """Report wrong options as "unknown" and return 3: a plugin's code 2 would mean "critical"."""
    from memorybus.health.verdict import unknown_verdict

    return print_verdict(Output(json=as_json), unknown_verdict(error))


def print_verdict(output: Output, found: "Verdict") -> int:
    """Print a verdict; return its exit code."""
    if output.json:
        output.result(found)
    else:
        output.show(found.line)
    return found.code
