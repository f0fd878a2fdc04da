"""Marks that make warm results unreadable if they were recalled before something was taken back.

For each owner (agent, person, workspace) and provider there is a mark. It changes right before the
provider forgets something of the owner's, and again once that is committed. A warm result carries
the mark from before its recall, and is read only while the owner still has this mark. So forgotten
text does not come back through a recall that was under way, through a result that was copied to
another session, or through a worker that died between the two changes.
"""

from redis import Redis

from memorybus.config.settings import Settings
from memorybus.events import Scope
from memorybus.ids import new_id
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, owner_slot

_RECALL_LIVES, _PROMPT_LIVES = 24, 2
"""A mark lives this many times as long as a warm recall, and as an addition to system prompts.

The longer of the two times counts (G10): no result from before a mark may outlive the mark."""


def change_mark(redis: Redis, settings: Settings, scope: Scope, provider: str) -> None:
    """Make everything unreadable that a provider has recalled for an owner so far.

    Raises:
        redis.RedisError: Redis is away.
    """
    key = Keys(settings.namespace).retracted(owner_slot(scope))
    with redis.pipeline(transaction=True) as pipe:
        pipe.hset(key, provider, new_id())
        life = max(settings.recall_ttl * _RECALL_LIVES, settings.prompt_ttl * _PROMPT_LIVES)
        pipe.pexpire(key, round(life * 1000))
        pipe.execute()


def change_mark_now(settings: Settings, scope: Scope, provider: str) -> None:
    """Do as `change_mark` does, over a connection of its own; safe on any thread.

    Raises:
        redis.RedisError: Redis is away.
    """
    with connect_redis(settings) as redis:
        change_mark(redis, settings, scope, provider)


def mark_of(redis: Redis, settings: Settings, scope: Scope, provider: str) -> str:
    """Return the mark of an owner and a provider; "" if nothing was taken back lately.

    Raises:
        redis.RedisError: Redis is away.
    """
    key = Keys(settings.namespace).retracted(owner_slot(scope))
    found: bytes | None = redis.hget(key, provider)  # type: ignore[assignment]
    return found.decode() if found else ""
