"""Shows the archive, copies and generations with their progress; starts rebuild and rollback."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError

from memorybus_console.operations.copies.copies import list_copies
from memorybus_console.operations.copies.generations import Generation, generations
from memorybus_console.operations.rebuild import carry_out, plan
from memorybus_console.operations.rebuild import drop as generation_drop
from memorybus_console.operations.rebuild.plan import RebuildRequest
from memorybus_console.operations.rebuild.rebuild import Rebuilder, RebuildResult, open_rebuilder
from memorybus_console.operations.stores import Stores
from memorybus_console.web.errands import Tell
from memorybus_console.web.page import Act, ActResult, Page, PageRequest

_DROPPED = "dropped"


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the archive, copies, generations, and the work in progress.

    Raises:
        LogUnavailable: Redis is away.
    """
    with Stores(request.settings) as stores:
        view = stores.instances.read_view()
        names = list(stores.roster.providers())
        providers = [*names, *(one for one in request.settings.providers if one not in names)]
        known = {name: _existing(generations(name, view)) for name in providers}
        found, working = list_copies(stores), stores.working_commands(providers)
    return {
        "bus": request.bus_state(),
        "generations": known,
        "copies": [one for one in found if one.state not in (_DROPPED, "live")],
        "working": working,
        "errands": request.site.errands.all(),
    }


def _existing(found: list[Generation]) -> list[Generation]:
    return [one for one in found if one.state != _DROPPED]


def show_plan(request: PageRequest) -> Mapping[str, Any]:
    """Return what a rebuild, a rollback and a drop of a provider would do; change nothing.

    Raises:
        ConfigError: the provider is unknown.
        MemoryBusError: the history cannot be read.
    """
    provider = request.path["name"]
    wanted = RebuildRequest(provider=provider, by=request.operator)
    with Stores(request.settings) as stores:
        stores.check_partitions()
        prepared = plan.plan_rebuild(stores, wanted, SYSTEM)
        back = _try_plan(lambda: plan.rollback_target(stores, provider))
        drop = _try_plan(lambda: ", ".join(generation_drop.plan_drop(stores, provider).dropped))
    return {
        "bus": request.bus_state(),
        "provider": provider,
        "prepared": prepared,
        "unserved": "" if prepared.served else carry_out.describe_unserved(provider),
        "back": back,
        "drop": drop,
    }


class _PlannedStep(msgspec.Struct, frozen=True):
    """What could be done, or why it cannot be done."""

    what: str = ""
    why_not: str = ""


def _try_plan(ask: Callable[[], str]) -> _PlannedStep:
    try:
        return _PlannedStep(what=ask())
    except ConfigError as error:
        return _PlannedStep(why_not=str(error))


def rebuild(request: PageRequest) -> ActResult:
    """Begin a rebuild."""
    return _begin(
        request, "rebuild", lambda work, wanted: _describe_rebuilt(carry_out.rebuild(work, wanted))
    )


def roll_back(request: PageRequest) -> ActResult:
    """Begin a rollback."""
    return _begin(
        request,
        "rollback",
        lambda work, wanted: _describe_rebuilt(carry_out.roll_back(work, wanted)),
    )


def drop(request: PageRequest) -> ActResult:
    """Begin to drop the generations that do not serve."""

    def work_on(work: Rebuilder, wanted: RebuildRequest) -> str:
        gone = carry_out.drop(work, wanted)
        return "; ".join([f"dropped: {', '.join(gone.dropped) or 'nothing yet'}", *gone.waits])

    return _begin(request, "drop", work_on)


def _begin(
    request: PageRequest, what: str, do: Callable[[Rebuilder, RebuildRequest], str]
) -> ActResult:
    provider, settings = request.path["name"], request.settings
    wanted = RebuildRequest(provider=provider, reason=request.reason, by=request.operator)

    def run(tell: Tell) -> str:
        with open_rebuilder(settings, provider, what, wanted.by, tell) as work:
            return do(work, wanted)

    request.site.errands.begin(what, provider, request.operator, run)
    return ActResult(f"{what} of {provider} has begun", "/history")


def _describe_rebuilt(done: RebuildResult) -> str:
    found = done.compared
    compared = f"; {found.keys - found.differing} of {found.keys} keys equal" if found else ""
    return (
        f"{done.live} serves {done.provider}{compared}; its lanes paused for "
        f"{done.paused_ms / 1000:.1f} s; {done.previous} is kept"
    )


PAGE = Page(path="/history", template="history.html", show=show, label="History", key="h")

PLAN = Page(
    path="/history/{name}",
    template="history_plan.html",
    show=show_plan,
    acts=(
        Act("/history/{name}/rebuild", "rebuild", rebuild),
        Act("/history/{name}/rollback", "roll back", roll_back),
        Act("/history/{name}/drop", "drop generations", drop),
    ),
)
