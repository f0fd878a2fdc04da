"""``memorybus forget``: erase a person or an agent, and report what could not be erased."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus_console.cli.answers import WAIT_SECONDS, ReasonOption, YesOption, act, shown
from memorybus_console.cli.options import DEFAULT, Common, positive

if TYPE_CHECKING:
    from memorybus_console.operations.forget import Erasure, PlannedErasure


@shown
def run_forget(
    *,
    user: Annotated[str | None, Parameter(help="This person.")] = None,
    agent: Annotated[
        str | None,
        Parameter(help="This agent; with --user, only that person with this agent."),
    ] = None,
    workspace: Annotated[str | None, Parameter(help="Only this workspace; '' for none.")] = None,
    reason: ReasonOption = "",
    yes: YesOption = False,
    wait: Annotated[
        float,
        Parameter(help="Seconds to wait for lanes, and for each provider.", validator=positive),
    ] = WAIT_SECONDS,
    common: Common = DEFAULT,
) -> "PlannedErasure | Erasure | None":
    """Erase a person or an agent from the history, providers, dead letters and cached recalls.

    Events up to now are hidden for good, so that no replay and no rebuild brings them back. Each
    provider erases what it keeps and reports what it cannot erase. Run the command again if
    anything is left to do. Later events are remembered as usual: first stop the agents that still
    talk to this person. Exit code 1 if something could not be done.

    For example:

    - `memorybus forget --user ana`
    - `memorybus forget --user ana --reason "asked on 3 May" --yes --json | jq .remains`
    """
    from memorybus_console.actions.memories import Forget

    action = Forget(user=user, agent=agent, workspace=workspace, reason=reason)
    return act(action, common, yes=yes, wait=wait)
