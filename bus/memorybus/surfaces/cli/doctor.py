"""Commands that care for the system: doctor."""

from cyclopts import App
from rich.text import Text

from memorybus.health.finding import Check
from memorybus.surfaces.cli.options import CARE, DEFAULT, Common
from memorybus.surfaces.views.safe import visible


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_doctor, name="doctor", group=CARE)


def run_doctor(*, common: Common = DEFAULT) -> int:
    """Check everything, to the point of publishing a canary and recalling it.

    Exit code 1 if a check fails; each says what to do.

    For example:

    - `memorybus doctor`
    - `memorybus doctor --json | jq '.checks[] | select(.ok | not)'`
    """
    from memorybus.operations.doctor import doctor

    output = common.output()
    checks = []
    for check in doctor.examine(common.settings()):
        checks.append(check)
        if not output.json:
            output.show(checked(check))
    ok = all(check.ok for check in checks)
    if output.json:
        output.result({"ok": ok, "checks": checks})
    return 0 if ok else 1


def checked(check: Check) -> Text:
    """Return a check as a line, with its remedy below if it failed or warns."""
    sound = ("!", "yellow") if check.fix else ("✓", "green")
    mark = sound if check.ok else ("✗", "bold red")
    line = Text.assemble(mark, f" {check.name:<16} {visible(check.found)}")
    if check.fix:
        line.append(f"\n    → {visible(check.fix)}", style="yellow")
    return line
