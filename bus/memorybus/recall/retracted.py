"""Which warm results may still hold what was taken back: those recalled before it was forgotten.

For each owner (agent, person, workspace) and provider there is a mark. It changes right before the
provider forgets something of the owner's, and again once that is committed. A warm result carries
the mark that stood before it was recalled, and is read only while that mark stands. So neither a
recall that was under way, nor a result that was copied to another session, nor a worker that died
between the two changes brings back what is gone.
"""

from redis import Redis

from memorybus.config.settings import Settings
from memorybus.events import Scope
from memorybus.ids import new_id
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, owner_slot

_RECALLS, _PROMPTS = 24, 2
"""How many times as long as warm recall, and as what stands ready for system prompts, a mark lives.

The longer of the two (G10): nothing that was recalled before the mark may outlive it."""


def change_mark(redis: Redis, settings: Settings, scope: Scope, provider: str) -> None:
    """Make unreadable all that a provider has recalled for an owner so far.

    Raises:
        redis.RedisError: Redis is away.
    """
    key = Keys(settings.namespace).retracted(owner_slot(scope))
    with redis.pipeline(transaction=True) as pipe:
        pipe.hset(key, provider, new_id())
        life = max(settings.recall_ttl * _RECALLS, settings.prompt_ttl * _PROMPTS)
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
    """Return the mark of an owner and a provider, "" if nothing was taken back of late.

    Raises:
        redis.RedisError: Redis is away.
    """
    key = Keys(settings.namespace).retracted(owner_slot(scope))
    found: bytes | None = redis.hget(key, provider)  # type: ignore[assignment]
    return found.decode() if found else ""
