"""``memorybus provider retry-now``: retry at once what waits for its next try."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus_console.cli.options import DEFAULT, Common, ExecuteOption, InstanceOption, operator
from memorybus_console.cli.progress import checked_stores
from memorybus_console.views.output import NOTHING_DONE, Output
from memorybus_console.views.safe import visible

if TYPE_CHECKING:
    from memorybus_console.operations.providers.retry_now import RetryNow


def run_retry_now(
    name: InstanceOption,
    /,
    *,
    parked: Annotated[
        bool, Parameter(negative="", help="Also apply its dead letters again.")
    ] = False,
    execute: ExecuteOption = False,
    common: Common = DEFAULT,
) -> int:
    """Retry at once whatever waits for its next try, because a backend works again.

    After failures, calls wait for up to half a minute. With this command every worker of the
    instance, within a heartbeat, probes the backend and retries failing events and halted lanes. A
    failed try counts as usual.

    For example:

    - `memorybus provider retry-now mem0`
    - `memorybus provider retry-now mem0 --parked --execute`
    """
    from memorybus_console.operations.providers.retry_now import plan_retry, retry_now

    output = common.output()
    with checked_stores(common.settings()) as stores:
        what = plan_retry(stores, name, parked=parked)
        if execute:
            what = retry_now(stores, what, operator())
    if output.json:
        output.result(what)
    else:
        _show_retry(output, what)
    return 0


def _show_retry(output: Output, what: "RetryNow") -> None:
    who = f"{what.name}, which serves {what.serves}," if what.serves else what.name
    verb = "is retried now" if what.executed else "would be retried now"
    dead = f", with {what.parked} dead letters" if what.parked else ""
    output.show(visible(f"{who} {verb}{dead}: {what.backlog} events wait for it"))
    if what.failing:
        output.note(f"its calls failed: {what.failing}")
    if not what.workers:
        output.note("no worker serves it; start one: memorybus up", "yellow")
    if what.executed:
        output.note("to watch its progress: memorybus status --watch")
    else:
        output.note(NOTHING_DONE, "yellow")
