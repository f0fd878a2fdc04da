"""What `memorybus doctor` says of rebuilds: which were killed, and what they left still."""

from collections.abc import Collection

from memorybus.instances import Instances, Sight, live_name
from memorybus.keys import Keys
from memorybus.links import connect_redis
from memorybus.rebuild_lock import at_work, prepared
from memorybus.settings import Settings
from memorybus.surfaces.check import Check
from memorybus.surfaces.generations import unended


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


def left_held(sight: Sight, busy: Collection[str]) -> Check:
    """Check holds against the providers that a living command works on; pure."""
    held = sorted(name for name, hold in sight.held.items() if prepared(hold))
    left = [name for name in held if _provider(name, sight) not in busy]
    cut = [name for name in sorted(sight.live) if unended(name, sight) and name not in busy]
    if cut and not left:
        return Check(
            name="rebuilds",
            ok=True,
            found=f"{cut[0]} was swapped by a command that is gone before it had ended",
            fix=f"memorybus rebuild {cut[0]} --execute",
        )
    if not left:
        return Check(name="rebuilds", ok=True, found="none was cut short")
    serving = [n for n in left if live_name(_provider(n, sight), sight.live) == n]
    listed = "; ".join(f"{name}: {sight.held[name].reason}" for name in left)
    return Check(
        name="rebuilds",
        ok=not serving,
        found=f"left standing still by a command that is gone: {listed}",
        fix=f"the same command goes on; or: memorybus provider resume {(serving or left)[0]}",
    )


def _providers(sight: Sight) -> set[str]:
    return {_provider(name, sight) for name in sight.held}


def _provider(name: str, sight: Sight) -> str:
    known = sight.all.get(name)
    return known.provider if known else name
