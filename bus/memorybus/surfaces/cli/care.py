"""Commands that care for the system: replay and doctor."""

from collections.abc import Iterator
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.text import Text

from memorybus.errors import MemoryBusError
from memorybus.surfaces import children
from memorybus.surfaces.check import Check
from memorybus.surfaces.cli.options import CARE, DEFAULT, Common
from memorybus.surfaces.output import Output
from memorybus.surfaces.safe import visible


class ReplayFailed(MemoryBusError):
    """A replay ended before it was finished."""


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_replay, name="replay", group=CARE)
    app.command(run_doctor, name="doctor", group=CARE)


def run_replay(
    *,
    provider: Annotated[str, Parameter(help="The provider instance whose events are replayed.")],
    into: Annotated[str, Parameter(help="Name of the fresh instance to apply them to.")],
    common: Common = DEFAULT,
) -> int:
    """Apply the log again, through the same applier, into a fresh instance of a provider.

    For example:

    - `memorybus replay --provider holographic --into holographic-2`
    """
    output = common.output()
    command = children.replay_command(provider, into)
    with children.running(command, common.settings()) as child:
        finished = _followed(child, output)
        code = child.stop() if finished is None else child.process.wait()
    if finished is None or code != 0:
        raise ReplayFailed(
            f"the replay of {provider} into {into} ended (exit code {code}) before it was "
            f"finished; the same command goes on from there"
        )
    if output.json:
        output.result(finished)
    else:
        output.show(f"{finished.get('applied', 0)} events of {provider} applied to {into}")
    return 0


def _followed(child: children.Child, output: Output) -> dict[str, Any] | None:
    """Show the child's progress; return its last report, or None if it never finished."""
    with output.progress("events") as bar:
        task = bar.add_task("replay", total=None)
        for report in _reports(child):
            if report.get("finished"):
                return report
            bar.update(task, completed=report.get("done", 0), total=report.get("total"))
    return None


def _reports(child: children.Child) -> Iterator[dict[str, Any]]:
    while (report := child.report()) is not None:
        yield report


def run_doctor(*, common: Common = DEFAULT) -> int:
    """Check everything, to the point of publishing a canary and recalling it.

    Exit code 1 if a check fails; each says what to do.

    For example:

    - `memorybus doctor`
    - `memorybus doctor --json | jq '.checks[] | select(.ok | not)'`
    """
    from memorybus.surfaces import doctor

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
