"""A rebuild, a rollback, a drop as a whole: each goes on with what was begun, and ends it."""

from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError
from memorybus.operations.copies.generations import unended
from memorybus.operations.rebuild import drop as generation_drop
from memorybus.operations.rebuild import plan
from memorybus.operations.rebuild.drop import Drop
from memorybus.operations.rebuild.plan import RebuildRequest
from memorybus.operations.rebuild.rebuild import Rebuilder, Rebuilt


def rebuild(work: Rebuilder, wanted: RebuildRequest) -> Rebuilt:
    """Make a generation, fill and compare it, and let it serve.

    Raises:
        ConfigError: see `plan.prepare`; or nobody would fill it.
        MemoryBusError: see `Rebuilder.swap`.
    """
    found = plan.prepare(work.stores, wanted, SYSTEM)
    if not found.served:
        raise ConfigError(unserved(wanted.provider))
    ended = _ended(work, wanted)
    if ended is not None and found.swapped:
        return ended
    work.make(found, check=wanted.verify)
    return work.swap(
        found.instance.name,
        wanted.provider,
        wanted.by,
        wanted.reason,
        check=wanted.verify,
        alike=found.compared,
    )


def roll_back(work: Rebuilder, wanted: RebuildRequest) -> Rebuilt:
    """Bring the generation before up to date, and let it serve again.

    Raises:
        ConfigError: there is none.
        MemoryBusError: see `Rebuilder.swap`.
    """
    to = plan.rolled_back_to(work.stores, wanted.provider)
    ended = _ended(work, wanted)
    if ended is not None and ended.live == to:
        return ended
    return work.swap(to, wanted.provider, wanted.by, wanted.reason, check=False, alike=False)


def drop(work: Rebuilder, wanted: RebuildRequest) -> Drop:
    """Remove what was begun; if nothing was, all that do not serve; raises as `drop.drop` does."""
    what = generation_drop.droppable(work.stores, wanted.provider)
    return generation_drop.drop(work, what, wanted.by, SYSTEM)


def unserved(provider: str) -> str:
    """Return what to do where no worker fills what is made."""
    return (
        f"no live worker serves {provider} with recalls, and workers fill and compare: start one, "
        f"memorybus up (or memorybus worker), then the same command again"
    )


def _ended(work: Rebuilder, wanted: RebuildRequest) -> Rebuilt | None:
    """Do what is left of a swap whose command was killed after it, if there is one."""
    if not unended(wanted.provider, work.stores.instances.look()):
        return None
    return work.finish(wanted.provider, wanted.by)
