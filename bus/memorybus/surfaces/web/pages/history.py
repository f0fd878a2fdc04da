"""History: what is sealed, copies and generations, and how far they are."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError
from memorybus.operations.copies.copies import list_copies
from memorybus.operations.copies.generations import Generation, generations
from memorybus.operations.rebuild import carry_out, plan
from memorybus.operations.rebuild import drop as generation_drop
from memorybus.operations.rebuild.plan import RebuildRequest
from memorybus.operations.rebuild.rebuild import Rebuilder, RebuildResult, open_rebuilder
from memorybus.operations.stores import Stores
from memorybus.surfaces.web.errands import Tell
from memorybus.surfaces.web.page import Act, Asked, Done, Page

_DROPPED = "dropped"


def show(asked: Asked) -> Mapping[str, Any]:
    """Return archive, copies, generations, and what is done now.

    Raises:
        LogUnavailable: Redis is away.
    """
    with Stores(asked.settings) as stores:
        sight = stores.instances.look()
        names = list(stores.roster.providers())
        providers = [*names, *(one for one in asked.settings.providers if one not in names)]
        known = {name: _there(generations(name, sight)) for name in providers}
        found, working = list_copies(stores), stores.working_commands(providers)
    return {
        "look": asked.look(),
        "generations": known,
        "copies": [one for one in found if one.state not in (_DROPPED, "live")],
        "working": working,
        "errands": asked.site.errands.all(),
    }


def _there(found: list[Generation]) -> list[Generation]:
    return [one for one in found if one.state != _DROPPED]


def show_plan(asked: Asked) -> Mapping[str, Any]:
    """Return what a rebuild, a rollback and a drop of a provider would do; change nothing.

    Raises:
        ConfigError: nobody knows the provider.
        MemoryBusError: the history cannot be read.
    """
    provider = asked.path["name"]
    wanted = RebuildRequest(provider=provider, by=asked.operator)
    with Stores(asked.settings) as stores:
        stores.check_partitions()
        prepared = plan.plan_rebuild(stores, wanted, SYSTEM)
        back = _or_why(lambda: plan.rollback_target(stores, provider))
        drop = _or_why(lambda: ", ".join(generation_drop.plan_drop(stores, provider).dropped))
    return {
        "look": asked.look(),
        "provider": provider,
        "prepared": prepared,
        "unserved": "" if prepared.served else carry_out.describe_unserved(provider),
        "back": back,
        "drop": drop,
    }


class _Possible(msgspec.Struct, frozen=True):
    """What could be done, or why it cannot be."""

    what: str = ""
    why_not: str = ""


def _or_why(ask: Callable[[], str]) -> _Possible:
    try:
        return _Possible(what=ask())
    except ConfigError as error:
        return _Possible(why_not=str(error))


def rebuild(asked: Asked) -> Done:
    """Begin a rebuild."""
    return _begun(asked, "rebuild", lambda work, wanted: _said(carry_out.rebuild(work, wanted)))


def roll_back(asked: Asked) -> Done:
    """Begin a rollback."""
    return _begun(asked, "rollback", lambda work, wanted: _said(carry_out.roll_back(work, wanted)))


def drop(asked: Asked) -> Done:
    """Begin to drop what does not serve."""

    def work_on(work: Rebuilder, wanted: RebuildRequest) -> str:
        gone = carry_out.drop(work, wanted)
        return "; ".join([f"dropped: {', '.join(gone.dropped) or 'nothing yet'}", *gone.waits])

    return _begun(asked, "drop", work_on)


def _begun(asked: Asked, what: str, do: Callable[[Rebuilder, RebuildRequest], str]) -> Done:
    provider, settings = asked.path["name"], asked.settings
    wanted = RebuildRequest(provider=provider, reason=asked.reason, by=asked.operator)

    def run(tell: Tell) -> str:
        with open_rebuilder(settings, provider, what, wanted.by, tell) as work:
            return do(work, wanted)

    asked.site.errands.begin(what, provider, asked.operator, run)
    return Done(f"{what} of {provider} has begun", "/history")


def _said(done: RebuildResult) -> str:
    found = done.compared
    compared = f"; {found.keys - found.differing} of {found.keys} keys equal" if found else ""
    return (
        f"{done.live} serves {done.provider}{compared}; its lanes paused for "
        f"{done.held_ms / 1000:.1f} s; {done.previous} is kept"
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
