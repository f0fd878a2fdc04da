"""``memorybus check``: one line and an exit code, for monitoring plugins."""

from cyclopts import App

from memorybus.clock import SYSTEM
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.surfaces.cli.options import DEFAULT, LOOK, Common


def register(app: App) -> None:
    """Add this command."""
    app.command(run_check, name="check", group=LOOK)


def run_check(*, common: Common = DEFAULT) -> int:
    """Say in one line whether all is well, as Nagios, Icinga and their like want it.

    It reads and changes nothing. Exit codes: 0 all is well, 1 a warning, 2 something critical (so
    is a Redis that is away or refuses us), 3 nobody knows, since the settings are wrong.

    For example:

    - `memorybus check`
    - `memorybus check --json | jq '.findings[].remedy'`
    """
    from memorybus.health.monitor import read_status, spool_status
    from memorybus.health.verdict import Verdict, unknown, unreachable, verdict

    output = common.output()
    found: Verdict
    try:
        settings = common.settings()
        try:
            status = read_status(settings)
            found = verdict(status, settings.providers, SYSTEM.now_ms())
        except LogUnavailable as error:
            found = unreachable(error, spool_status(settings))
    except MemoryBusError as error:
        found = unknown(error)
    if output.json:
        output.result(found)
    else:
        output.show(found.line)
    return found.code
