"""``memorybus provider test``: try an instance step by step."""

from collections.abc import Generator, Iterable
from typing import Annotated

import msgspec
from cyclopts import Parameter
from memorybus.health.finding import Check
from memorybus.processes.reports import TrialStep, TrialTerms
from rich.text import Text

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common, InstanceOption, not_negative
from memorybus_console.result import Presentation, Stepwise
from memorybus_console.views.render import check_line, line


class Tried(msgspec.Struct, frozen=True):
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
) -> "Stepwise[Tried]":
    """Open an instance as a worker does, write to it, recall what was written, and erase it.

    It writes for an agent and a person that do not exist, and no event passes through the log. Exit
    code 1 if a step fails; the step shows the exact error and what to do.

    For example:

    - `memorybus provider test holographic`
    - `memorybus provider test honcho --wait 60 --json`
    """
    from memorybus_console.operations.providers.trial import try_provider

    steps = try_provider(common.settings(), name, TrialTerms(wait, agent, user))
    return Stepwise(_try(name, steps))


def _try(name: str, steps: Iterable[TrialStep]) -> Generator[Text, None, Presentation[Tried]]:
    done = []
    for step in steps:
        done.append(step)
        yield step_line(step)
    ok = all(step.ok for step in done)
    return Presentation(Tried(name, ok, done), (), code=int(not ok))


def step_line(step: TrialStep) -> Text:
    """Return a step of a trial as a line."""
    if not step.claimed:
        return line(f"– {step.name:<16} {'':>8}  {step.found}", "dim")
    found = f"{f'{step.seconds * 1000:.0f} ms':>8}  {step.found}"
    return check_line(Check(name=step.name, ok=step.ok, found=found, fix=step.fix))
