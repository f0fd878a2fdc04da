"""``memorybus provider set|retry-now``: change providers while their workers run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus.config.call_limits import describe_limits
from memorybus.errors import ConfigError
from memorybus.surfaces.cli.key_values import parse_key_values
from memorybus.surfaces.cli.options import DEFAULT, Common, ExecuteOption, InstanceOption, operator
from memorybus.surfaces.cli.progress import checked_stores
from memorybus.surfaces.views.output import NOTHING_DONE, Output
from memorybus.surfaces.views.safe import visible

if TYPE_CHECKING:
    from memorybus.operations.providers.operator_requests import LimitsChange, RetryNow


def run_set(
    name: Annotated[str, Parameter(help="The provider.")],
    /,
    *limits: Annotated[
        str,
        Parameter(help="limit=number, of concurrency, calls_per_second, daily_budget."),
    ],
    reset: Annotated[
        bool, Parameter(negative="", help="Return to the limits of the settings.")
    ] = False,
    reason: Annotated[str, Parameter(help="Why; it is recorded.")] = "",
    execute: ExecuteOption = False,
    common: Common = DEFAULT,
) -> int:
    """Change the limits on calls to a provider's backend, while its workers run.

    Within a heartbeat workers let the instance finish its calls, and restart it with the new
    limits. The limits override memorybus.toml, which is not changed; they outlast restarts of
    workers, until this command sets others. `limit=`, without a number, returns to the limit of the
    settings. `concurrency` counts in each worker, and only for a provider that allows concurrent
    calls.

    For example:

    - `memorybus provider set mem0 concurrency=4 calls_per_second=2`
    - `memorybus provider set mem0 daily_budget=500 --reason "ticket 812" --execute`
    - `memorybus provider set mem0 --reset --execute`
    """
    from memorybus.operations.providers import operator_requests

    output = common.output()
    if bool(limits) == reset:
        raise ConfigError("name limits, as in calls_per_second=2, or give --reset")
    with checked_stores(common.settings()) as stores:
        what = operator_requests.plan_limits(stores, name, parse_key_values(limits), reset=reset)
        if execute:
            what = operator_requests.set_limits(stores, what, reason, operator())
    if output.json:
        output.result(what)
    else:
        _show_limits(output, what)
    return 0


def _show_limits(output: Output, what: "LimitsChange") -> None:
    output.show(visible(f"in the settings:      {describe_limits(what.configured)}"))
    output.show(visible(f"overridden before:    {_override_text(what.before)}"))
    then = "overridden now:      " if what.executed else "would be overridden: "
    output.show(visible(f"{then} {_override_text(what.after)}"))
    if not what.executed:
        output.note(NOTHING_DONE, "yellow")
    elif what.after:
        output.note(
            f"workers follow within a heartbeat, also after restarts, until memorybus provider set "
            f"{what.name} --reset --execute; memorybus.toml is unchanged"
        )


def _override_text(limits: Mapping[str, float]) -> str:
    return describe_limits(limits) or "nothing"


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
    from memorybus.operations.providers import operator_requests

    output = common.output()
    with checked_stores(common.settings()) as stores:
        what = operator_requests.plan_retry(stores, name, parked=parked)
        if execute:
            what = operator_requests.retry_now(stores, what, operator())
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
