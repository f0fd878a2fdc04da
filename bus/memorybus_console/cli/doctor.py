"""``memorybus doctor``: check everything."""

from typing import Annotated, TypedDict

from cyclopts import App, Parameter
from memorybus.health.finding import Check

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, OPERATE, Common
from memorybus_console.result import Prints


class Examined(TypedDict):
    """What was checked, and whether all is well."""

    ok: bool
    checks: list[Check]


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_doctor, name="doctor", group=OPERATE)


@shown
def run_doctor(
    *,
    deep: Annotated[
        bool,
        Parameter(
            negative="", help="Write a word into every provider, recall it, and remove it again."
        ),
    ] = False,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(Examined)]":
    """Check everything, and publish a canary event to see that it reaches every lane.

    Every provider's lane passes the canary on without calling its backend. With --deep the backends
    are called, too: that leaves four events in the log, and costs what those calls cost.

    Exit code 1 if a check fails; each failed check says what to do.

    For example:

    - `memorybus doctor`
    - `memorybus doctor --deep`
    - `memorybus doctor --json | jq '.checks[] | select(.ok | not)'`
    """
    from memorybus_console.operations.doctor import doctor
    from memorybus_console.views.render import check_line

    output = common.output()
    checks = []
    for check in doctor.examine(common.settings(), deep=deep):
        checks.append(check)
        if not output.json:
            output.show(check_line(check))
    ok = all(check.ok for check in checks)
    if output.json:
        output.result({"ok": ok, "checks": checks})
    return 0 if ok else 1
