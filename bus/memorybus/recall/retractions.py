"""Takes back warm results: of an owner who has something forgotten, of a replaced instance.

For each owner (agent, person, workspace) and provider there is a mark. It changes right before the
provider forgets something of the owner's, and again once that is committed; a purge changes those
of all owners who asked. A warm result carries the mark from before its recall, and is read only
while the owner still has this mark. So forgotten text does not come back through a recall that was
under way, through a result that was copied to another session, or through a worker that died
between the two changes.

The results of an instance that no longer serves its provider are deleted. If a session's request
still exists, the new instance is asked for the answer.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from typing import Any

import msgspec
from redis import Redis

from memorybus.config.settings import Settings
from memorybus.events import Scope, SessionRef
from memorybus.ids import new_id
from memorybus.msgspec_types import prepared
from memorybus.recall.model import GENERATION, RecallRequest, prompt_slot, slot_of
from memorybus.recall.queue import RecallQueue
from memorybus.redis.cluster import group_by_shard
from memorybus.redis.connect import connect_jobs, connect_redis, connected, redis_errors
from memorybus.redis.keys import Keys, owner_slot

_RECALL_LIVES, _PROMPT_LIVES = 24, 2
"""A mark lives this many times as long as a warm recall, and as an addition to system prompts.

The longer of the two times counts (G10): no result from before a mark may outlive the mark."""

_PAGE = 500
_KEYS_OF_ALL_SHARDS = 512  # number of keys that almost surely reach every shard of a cluster


def change_mark(redis: Redis, settings: Settings, scope: Scope, provider: str) -> None:
    """Make everything unreadable that a provider has recalled for an owner so far."""
    key = Keys(settings.namespace).retracted(owner_slot(scope))
    with redis.pipeline(transaction=True) as pipe:
        pipe.hset(key, provider, new_id())
        life = max(settings.recall_ttl * _RECALL_LIVES, settings.prompt_ttl * _PROMPT_LIVES)
        pipe.pexpire(key, round(life * 1000))
        pipe.execute()


def change_mark_now(settings: Settings, scope: Scope, provider: str) -> None:
    """Do as `change_mark` does, over a connection of its own; safe on any thread."""
    with connect_redis(settings) as redis:
        change_mark(redis, settings, scope, provider)


def mark_of(redis: Redis, settings: Settings, scope: Scope, provider: str) -> str:
    """Return the mark of an owner and a provider; "" if nothing was taken back lately."""
    key = Keys(settings.namespace).retracted(owner_slot(scope))
    found: bytes | None = redis.hget(key, provider)  # type: ignore[assignment]
    return found.decode() if found else ""


def purge(redis: Redis, settings: Settings, provider: str) -> int:
    """Delete a provider's warm results, and ask for them again; recalls under way are not read."""
    keys = Keys(settings.namespace)
    gone = 0
    with closing(connect_jobs(settings)) as jobs, redis_errors("recall"):
        queue = RecallQueue(jobs, settings, provider)
        for slots in _pages(_slots(redis, keys)):
            requests = _requests_of(redis, keys, slots)
            for owner in {want.owner for want in requests.values() if want.owner}:
                change_mark(redis, settings, owner, provider)
            held = _delete_results(redis, keys, provider, slots)
            gone += len(held)
            for slot in requests.keys() & held:
                queue.put(slot)
    return gone


def purge_sessions(
    settings: Settings, sessions: Collection[tuple[Scope, SessionRef]], instances: Collection[str]
) -> None:
    """Delete the warm results of sessions; recalls of their owners under way are not read."""
    keys = Keys(settings.namespace)
    owners = {scope for scope, _ in sessions}
    slots = {slot_of(scope, session) for scope, session in sessions}
    slots |= {prompt_slot(scope) for scope in owners}
    with connected(settings) as redis:
        for scope in owners:
            for name in instances:
                change_mark(redis, settings, scope, name)
        for slot in slots:
            redis.delete(*keys.slot(slot))


def purge_answers(settings: Settings, providers: Iterable[str]) -> None:
    """Delete everybody's warm results of some providers, which are asked again, and all replies."""
    keys = Keys(settings.namespace)
    with connected(settings) as redis:
        for provider in providers:
            purge(redis, settings, provider)
        for partition in range(settings.partitions):
            [shard] = group_by_shard(redis, [keys.log(partition)])
            for key in shard.redis.scan_iter(match=keys.reply(partition, "*"), count=_PAGE):
                redis.delete(key)


def _slots(redis: Redis, keys: Keys) -> Iterator[str]:
    """Yield the slots that have a request or warm results; one may come twice."""
    spread = (keys.warm(str(number)) for number in range(_KEYS_OF_ALL_SHARDS))
    for shard in group_by_shard(redis, spread):
        for key_of in (keys.want, keys.warm):
            before, after = key_of("\0").split("\0")
            found: Iterable[bytes] = shard.redis.scan_iter(match=key_of("*"), count=_PAGE)
            for key in found:
                yield key.decode(errors="replace").removeprefix(before).removesuffix(after)


def _pages(slots: Iterator[str]) -> Iterator[list[str]]:
    page: list[str] = []
    for slot in slots:
        page.append(slot)
        if len(page) == _PAGE:
            yield page
            page = []
    yield page


def _delete_results(redis: Redis, keys: Keys, provider: str, slots: list[str]) -> list[str]:
    with redis.pipeline(transaction=False) as pipe:
        for slot in slots:
            pipe.hdel(keys.warm(slot), provider, GENERATION + provider.encode())
        counts: list[Any] = pipe.execute()
    return [slot for slot, count in zip(slots, counts, strict=True) if count]


def _requests_of(redis: Redis, keys: Keys, slots: list[str]) -> dict[str, RecallRequest]:
    with redis.pipeline(transaction=False) as pipe:
        for slot in slots:
            pipe.hget(keys.want(slot), "r")
        bodies: list[Any] = pipe.execute()
    decode = msgspec.json.Decoder(prepared(RecallRequest)).decode
    return {slot: decode(body) for slot, body in zip(slots, bodies, strict=True) if body}
