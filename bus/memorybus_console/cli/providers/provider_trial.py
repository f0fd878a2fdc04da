"""``memorybus provider test``: try an instance step by step."""

from collections.abc import Iterable
from typing import Annotated, TypedDict

from cyclopts import Parameter
from memorybus.health.finding import Check
from memorybus.processes.reports import TrialStep, TrialTerms
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common, InstanceOption, not_negative
from memorybus_console.result import Prints
from memorybus_console.views.output import Output
from memorybus_console.views.render import check_line, line


class Tried(TypedDict):
    """The result of trying an instance."""

    provider: str
    ok: bool
    steps: list[TrialStep]


@shown
def run_test(
    name: InstanceOption,
    /,
    *,
    wait: Annotated[
        float,
        Parameter(
            help="Seconds in which recalls must find what was written.",
            validator=not_negative,
        ),
    ] = 10.0,
    agent: Annotated[
        str, Parameter(help="The invented agent for whom it writes, and whom it erases again.")
    ] = "provider-test",
    user: Annotated[
        str,
        Parameter(
            help="The person, for a provider that serves one person; then a turn stays there."
        ),
    ] = "provider-test",
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(Tried)]":
    """Open an instance as a worker does, write to it, recall what was written, and erase it.

    It writes for an agent and a person that do not exist, and no event passes through the log. Exit
    code 1 if a step fails; the step shows the exact error and what to do.

    For example:

    - `memorybus provider test holographic`
    - `memorybus provider test honcho --wait 60 --json`
    """
    from memorybus_console.operations.providers.trial import try_provider

    output = common.output()
    steps = show_steps(output, try_provider(common.settings(), name, TrialTerms(wait, agent, user)))
    ok = all(step.ok for step in steps)
    if output.json:
        output.result({"provider": name, "ok": ok, "steps": steps})
    return 0 if ok else 1


def show_steps(
    output: Output, steps: Iterable[TrialStep], *, aside: bool = False
) -> list[TrialStep]:
    """Show each step when it is done, on stderr if `aside`; return all steps."""
    done = []
    for step in steps:
        done.append(step)
        if not output.json:
            (output.aside if aside else output.show)(_step_line(step))
    return done


def _step_line(step: TrialStep) -> Text:
    if not step.claimed:
        return line(f"– {step.name:<16} {'':>8}  {step.found}", "dim")
    found = f"{f'{step.seconds * 1000:.0f} ms':>8}  {step.found}"
    return check_line(Check(name=step.name, ok=step.ok, found=found, fix=step.fix))
