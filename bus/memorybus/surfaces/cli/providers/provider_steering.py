"""``memorybus provider set|retry-now``: providers changed while their workers run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus.errors import ConfigError
from memorybus.surfaces.cli.key_values import given
from memorybus.surfaces.cli.options import DEFAULT, Common, operator
from memorybus.surfaces.cli.progress import checked_stores
from memorybus.surfaces.cli.providers.provider_life import Execute, Name
from memorybus.surfaces.views.output import NOTHING_DONE, Output
from memorybus.surfaces.views.render import described_limits
from memorybus.surfaces.views.safe import visible

if TYPE_CHECKING:
    from memorybus.operations.providers.steering import LimitsChange, RetryNow


def run_set(
    name: Annotated[str, Parameter(help="The provider.")],
    /,
    *limits: Annotated[
        str, Parameter(help="limit=number; concurrency, calls_per_second, daily_budget.")
    ],
    reset: Annotated[
        bool, Parameter(negative="", help="Let all limits be those of the settings again.")
    ] = False,
    reason: Annotated[str, Parameter(help="Why; it is recorded.")] = "",
    execute: Execute = False,
    common: Common = DEFAULT,
) -> int:
    """Change how much of a provider's backend workers use, while they run.

    Workers obey within a heartbeat: its instance ends its calls, and begins anew with the limits.
    They hold beside memorybus.toml, which is not changed, over restarts of workers too, until this
    command sets others; `limit=` (with nothing behind) is that of the settings again. `concurrency`
    counts in each worker, and only where a provider allows several calls at once.

    For example:

    - `memorybus provider set mem0 concurrency=4 calls_per_second=2`
    - `memorybus provider set mem0 daily_budget=500 --reason "ticket 812" --execute`
    - `memorybus provider set mem0 --reset --execute`
    """
    from memorybus.operations.providers import steering

    output = common.output()
    if bool(limits) == reset:
        raise ConfigError("name limits, as in calls_per_second=2, or say --reset")
    with checked_stores(common.settings()) as stores:
        what = steering.plan_limits(stores, name, given(limits), reset=reset)
        if execute:
            what = steering.set_limits(stores, what, reason, operator())
    if output.json:
        output.result(what)
    else:
        _show_limits(output, what)
    return 0


def _show_limits(output: Output, what: "LimitsChange") -> None:
    output.show(visible(f"the settings say:     {described_limits(what.configured)}"))
    output.show(visible(f"instead held:         {_instead(what.before)}"))
    then = "instead hold now:    " if what.executed else "instead would hold:  "
    output.show(visible(f"{then} {_instead(what.after)}"))
    if not what.executed:
        output.note(NOTHING_DONE, "yellow")
    elif what.after:
        output.note(
            f"workers obey within a heartbeat; it holds until memorybus provider set {what.name} "
            f"--reset --execute, over restarts too; memorybus.toml is as it was"
        )


def _instead(limits: Mapping[str, float]) -> str:
    return described_limits(limits) or "nothing"


def run_retry_now(
    name: Name,
    /,
    *,
    parked: Annotated[
        bool, Parameter(negative="", help="Apply its dead letters again, too.")
    ] = False,
    execute: Execute = False,
    common: Common = DEFAULT,
) -> int:
    """Let what waits for another try go on at once: a backend is mended.

    After failures calls wait for up to half a minute. Within a heartbeat every worker of the
    instance probes its backend, tries failing events again, and lanes that stand still. A try that
    fails counts as any other.

    For example:

    - `memorybus provider retry-now mem0`
    - `memorybus provider retry-now mem0 --parked --execute`
    """
    from memorybus.operations.providers import steering

    output = common.output()
    with checked_stores(common.settings()) as stores:
        what = steering.plan_retry(stores, name, parked=parked)
        if execute:
            what = steering.retry_now(stores, what, operator())
    if output.json:
        output.result(what)
    else:
        _show_retry(output, what)
    return 0


def _show_retry(output: Output, what: "RetryNow") -> None:
    who = f"{what.name}, which serves {what.serves}," if what.serves else what.name
    verb = "is tried again now" if what.executed else "would be tried again now"
    dead = f", with {what.parked} dead letters" if what.parked else ""
    output.show(visible(f"{who} {verb}{dead}: {what.backlog} events wait for it"))
    if what.failing:
        output.note(f"its calls failed: {what.failing}")
    if not what.workers:
        output.note("no worker serves it: start one: memorybus up", "yellow")
    if what.executed:
        output.note("see how far it is: memorybus status --watch")
    else:
        output.note(NOTHING_DONE, "yellow")
