"""What `memorybus doctor` says of rebuilds: which were killed, and what they left still."""

from collections.abc import Collection, Iterator, Sequence

from memorybus.config.settings import Settings
from memorybus.health.finding import Check
from memorybus.operations.copies.generations import ending, unended, unfinished
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instances, InstancesView, live_name
from memorybus.registry.pauses import prepared_copy
from memorybus.registry.rebuild_lock import at_work


def rebuilds(settings: Settings) -> Check:
    """Check that nothing stands still for a rebuild or a verification that is gone.

    Raises:
        LogUnavailable: Redis is away.
    """
    redis, keys = connect_redis(settings), Keys(settings.namespace)
    try:
        sight = Instances(redis, keys).look()
        return left_held(sight, at_work(redis, keys, _providers(sight)).keys())
    finally:
        redis.close()


def left_held(sight: InstancesView, busy: Collection[str]) -> Check:
    """Check what commands left against the providers that a living one works on; pure."""
    held = sorted(name for name, hold in sight.pauses.items() if prepared_copy(hold))
    left = [name for name in held if _provider(name, sight) not in busy]
    if left:
        return _standing(left, sight)
    found, fix = next(_unended(sight, busy), ("none was cut short", ""))
    return Check(name="rebuilds", ok=True, found=found, fix=fix)


def _standing(left: Sequence[str], sight: InstancesView) -> Check:
    serving = [n for n in left if live_name(_provider(n, sight), sight.live) == n]
    listed = "; ".join(f"{name}: {sight.pauses[name].reason}" for name in left)
    return Check(
        name="rebuilds",
        ok=not serving,
        found=f"left standing still by a command that is gone: {listed}",
        fix="the same command goes on"
        + (f"; or: memorybus provider resume {serving[0]}" if serving else ""),
    )


def _unended(sight: InstancesView, busy: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield what commands that are gone did not end, and what to do."""
    for name in sorted(_providers(sight) - set(busy)):
        begun = unfinished(name, "rebuild", sight)
        if unended(name, sight):
            yield (
                f"{name} was swapped by a command that is gone before it had ended",
                ending(name, sight),
            )
        elif begun is not None:
            yield (
                f"{begun.name} follows the log unused: its rebuild was cut short, or differed",
                f"the same command goes on; or: memorybus rebuild --drop {name} --execute",
            )
    for one in sight.all.values():
        if one.purpose == "verify" and not one.dropped and one.provider not in busy:
            yield f"{one.name} was left by a verification that is gone", "memorybus up removes it"


def _providers(sight: InstancesView) -> set[str]:
    made = {one.provider for one in sight.all.values()}
    return made | set(sight.live) | {_provider(name, sight) for name in sight.pauses}


def _provider(name: str, sight: InstancesView) -> str:
    known = sight.all.get(name)
    return known.provider if known else name
