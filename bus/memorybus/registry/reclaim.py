"""Lets the process that started a worker free its lanes at once after it died.

Other processes only know that a worker is silent. It may be cut off and still at work, so they must
wait until its leases expire. Its parent process knows that it has ended.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from redis import Redis

from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.redis import scripts
from memorybus.redis.connect import connected
from memorybus.redis.keys import Keys
from memorybus.registry.lanes import decode_done_above
from memorybus.registry.roster import ProviderInfo, Roster

_log = logging.getLogger("memorybus")
_REPLY_TIMEOUT = 1.0  # seconds for each reply of Redis: the caller has other workers to look after
_ENDS_WITH_ITS_CALLER = ("transactional", "keyed")
"""Delivery classes (G4) for which a call that outlives its process does no harm."""


def reclaim_lanes(settings: Settings, worker: str) -> set[str]:
    """Free a dead worker's lanes, and remove it from the roster; its process must be reaped.

    This is done only for ``transactional`` and ``keyed`` providers. The dead process may have sent
    a request to a ``lookup`` or ``blind`` backend that is still under way: there the lease has to
    expire (G3, G4). A lane that another worker has taken is left alone (G5). Returns the provider
    whose call ended the worker, if that is known (G6).
    """
    try:
        with connected(settings, timeout=_REPLY_TIMEOUT) as redis:
            return _reclaim(redis, settings, worker)
    except MemoryBusError as error:
        _log.warning("the lanes of %s wait for their leases' end: %s", worker, error)
        return set()


def _reclaim(redis: Redis, settings: Settings, worker: str) -> set[str]:
    keys = Keys(settings.namespace)
    roster = Roster(redis, keys)
    registered = roster.instances()
    lanes = [(name, p) for name in sorted(registered) for p in range(settings.partitions)]
    notes = _read_notes(redis, keys, lanes, worker)  # first: a reclaimed lane has no owner
    free = freed_at_once(registered)
    calls = [scripts.reclaim(keys, p, name, worker) for name, p in lanes if name in free]
    replies = scripts.run_many(redis, calls)
    roster.leave(worker)
    freed = sum(reply is True for reply in replies)
    _log.info("%s is dead: %d of its lanes are free at once", worker, freed)
    return fatal_providers((registered[name].copy_of or name, deaths) for name, deaths in notes)


def _read_notes(
    redis: Redis, keys: Keys, lanes: Sequence[tuple[str, int]], worker: str
) -> list[tuple[str, int]]:
    """Return for which of these instances the worker noted that it called them, and the deaths."""
    with redis.pipeline(transaction=False) as pipe:
        for name, partition in lanes:
            pipe.hmget(keys.lane(partition, name), "owner", "tries", "n", "done")
        replies = pipe.execute(raise_on_error=False)  # a key of another type is nobody's lane
    owned = [
        (name, *reply[1:])
        for (name, _), reply in zip(lanes, replies, strict=True)
        if isinstance(reply, list) and reply[0] == worker.encode() and reply[1]
    ]
    return [
        (name, deaths)
        for name, tries, n, done in owned
        for called, deaths in _decode_notes(tries).items()
        if not _is_done(called, int(n or 0), done or b"")
    ]


def _decode_notes(tries: bytes) -> dict[int, int]:
    try:
        return msgspec.json.decode(tries, type=dict[int, int])
    except msgspec.DecodeError:  # damaged: it names nobody, and the lane's next owner stops at it
        return {}


def _is_done(called: int, n: int, done: bytes) -> bool:
    return called <= n or bool(decode_done_above(done, n) >> (called - n - 1) & 1)


def fatal_providers(notes: Iterable[tuple[str, int]]) -> set[str]:
    """Return the provider whose call ended its worker, if only one comes into question; pure."""
    most: dict[int, set[str]] = {}
    for name, deaths in notes:
        most.setdefault(deaths, set()).add(name)
    named = most[max(most)] if most else set()
    return named if len(named) == 1 else set()


def freed_at_once(providers: Mapping[str, ProviderInfo]) -> set[str]:
    """Return the instances whose lanes need not wait for a dead owner's lease; pure."""
    return {name for name, info in providers.items() if info.delivery in _ENDS_WITH_ITS_CALLER}
