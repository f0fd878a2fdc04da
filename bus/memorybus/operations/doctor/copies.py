"""What `memorybus doctor` says of copies: whether Redis names some that are none."""

from collections.abc import Sequence

from memorybus.config.settings import Settings
from memorybus.health.finding import Check
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instances, describe_ignored, ignored_entries


def copies(settings: Settings) -> Check:
    """Check that every entry of the copies' hash is one.

    Raises:
        LogUnavailable: Redis is away.
    """
    redis, keys = connect_redis(settings), Keys(settings.namespace)
    try:
        strange = ignored_entries(Instances(redis, keys).look(), settings.providers)
    finally:
        redis.close()
    return strangers(keys.instances, strange)


def strangers(key: str, strange: Sequence[str]) -> Check:
    """Tell of entries that are not believed; pure."""
    if not strange:
        return Check(name="copies", ok=True, found="every entry is one")
    return Check(
        name="copies",
        ok=False,
        found=f"{key}: {describe_ignored(strange)}",
        fix=f"no command of memorybus made them: see who can write to this Redis, then delete them "
        f"(redis-cli hdel {key} NAME)",
    )
