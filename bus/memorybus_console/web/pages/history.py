"""Shows the archive, copies and generations with their progress; starts rebuild and rollback."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError

from memorybus_console.actions.history import DropGenerations, GenerationsAction, Rebuild, RollBack
from memorybus_console.operations.copies.copies import list_copies
from memorybus_console.operations.copies.generations import Generation, generations
from memorybus_console.operations.rebuild import plan, rebuild
from memorybus_console.operations.rebuild.plan import RebuildRequest
from memorybus_console.operations.stores import Stores, checked_stores
from memorybus_console.web.page import Act, Page, PageRequest

_DROPPED = "dropped"


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the archive, copies, generations, and the work in progress."""
    with Stores(request.settings) as stores:
        view = stores.instances.read_view()
        names = list(stores.roster.providers())
        providers = [
            *names,
            *(provider for provider in request.settings.providers if provider not in names),
        ]
        existing = {name: _existing(generations(name, view)) for name in providers}
        copies, working = list_copies(stores), stores.working_commands(providers)
    return {
        "bus": request.bus_state(),
        "generations": existing,
        "copies": [copy for copy in copies if copy.state not in (_DROPPED, "live")],
        "working": working,
        "tasks": request.site.tasks.all(),
    }


def _existing(every: list[Generation]) -> list[Generation]:
    return [generation for generation in every if generation.state != _DROPPED]


def show_plan(request: PageRequest) -> Mapping[str, Any]:
    """Return what a rebuild, a rollback and a drop of a provider would do; change nothing."""
    provider = request.path["name"]
    wanted = RebuildRequest(provider=provider)
    with checked_stores(request.settings) as stores:
        prepared = plan.plan_rebuild(stores, wanted, SYSTEM)
        back = _try_plan(lambda: plan.rollback_target(stores, provider))
        drop = _try_plan(lambda: ", ".join(rebuild.plan_drop(stores, provider).dropped))
    return {
        "bus": request.bus_state(),
        "provider": provider,
        "prepared": prepared,
        "unserved": "" if prepared.served else plan.describe_unserved(provider),
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


def _act(name: str, kind: type[GenerationsAction[Any, Any]]) -> Act:
    return Act(f"/history/{{provider}}/{name}", kind, lambda _: "/history", runs_long=True)


PAGE = Page(path="/history", template="history.html", show=show, label="History", key="h")

PLAN = Page(
    path="/history/{name}",
    template="history_plan.html",
    show=show_plan,
    acts=(
        _act("rebuild", Rebuild),
        _act("rollback", RollBack),
        _act("drop", DropGenerations),
    ),
)
