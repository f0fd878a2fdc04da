"""Carries out a whole rebuild, rollback or drop; each finishes what a killed command began."""

from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError

from memorybus_console.operations.copies.generations import unfinished_swap
from memorybus_console.operations.rebuild import drop as generation_drop
from memorybus_console.operations.rebuild import plan
from memorybus_console.operations.rebuild.drop import Drop
from memorybus_console.operations.rebuild.plan import RebuildRequest
from memorybus_console.operations.rebuild.rebuild import Rebuilder, RebuildResult


def rebuild(work: Rebuilder, request: RebuildRequest) -> RebuildResult:
    """Make a generation, fill and compare it, and make it live.

    Raises:
        ConfigError: see `plan.plan_rebuild`; or no worker would fill it.
    """
    rebuild_plan = plan.plan_rebuild(work.stores, request, SYSTEM)
    if not rebuild_plan.served:
        raise ConfigError(plan.describe_unserved(request.provider))
    ended = _finish_killed_swap(work, request)
    if ended is not None and rebuild_plan.swapped:
        return ended
    work.make_generation(rebuild_plan, check=request.verify)
    return work.swap(
        rebuild_plan.instance.name,
        request.provider,
        request.by,
        request.reason,
        check=request.verify,
        alike=rebuild_plan.compared,
    )


def roll_back(work: Rebuilder, request: RebuildRequest) -> RebuildResult:
    """Bring the previous generation up to date, and make it live again.

    Raises:
        ConfigError: there is no previous generation.
    """
    to = plan.rollback_target(work.stores, request.provider)
    ended = _finish_killed_swap(work, request)
    if ended is not None and ended.live == to:
        return ended
    return work.swap(to, request.provider, request.by, request.reason, check=False, alike=False)


def drop(work: Rebuilder, request: RebuildRequest) -> Drop:
    """Drop unfinished generations, or else all that are not live; raises as `drop_generations`."""
    what = generation_drop.plan_drop(work.stores, request.provider)
    return generation_drop.drop_generations(work, what, request.by, SYSTEM)


def _finish_killed_swap(work: Rebuilder, request: RebuildRequest) -> RebuildResult | None:
    """Finish the swap of a command that was killed after it; return None if there is none."""
    if not unfinished_swap(request.provider, work.stores.instances.read_view()):
        return None
    return work.finish_killed_swap(request.provider, request.by)
