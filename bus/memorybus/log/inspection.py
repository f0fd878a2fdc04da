"""The log as it stands: what `continuity` and `forecast` judge, read in one round trip.

Reading changes nothing, and costs the same however long the log is; where the counts do not agree,
entries are read one by one, a bounded number at each look.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from redis import Redis

from memorybus.config.settings import Settings
from memorybus.errors import ForeignKey
from memorybus.log.continuity import Audit, Page, Place, View, advanced, audit_of, needs_audit
from memorybus.log.forecast import AGES_MS
from memorybus.redis import scripts
from memorybus.redis.connect import translated
from memorybus.redis.keys import Keys

SAMPLES = 5
"""Nodes of a stream that are weighed."""

PAGE = 200
PAGES = 50
"""An audit reads this many pages of so many entries at each look, over all partitions."""


class Sight(msgspec.Struct, frozen=True):
    """One partition at one moment.

    Attributes:
        view: what it holds.
        size: bytes of its stream.
        ids: event ids it remembers, of the running window.
        ids_size: bytes of those.
        now_ms: the server's wall time.
        numbers: the number of the first entry not older than each age asked for; None for none.
    """

    view: View
    size: int
    ids: int
    ids_size: int
    now_ms: int
    numbers: tuple[int | None, ...]


class Inspector:
    """Looks at the log. Belongs to one thread.

    Attributes:
        audits: what was read entry by entry, by partition; kept from one look to the next.
    """

    def __init__(self, redis: Redis, settings: Settings, ages: Sequence[int] = AGES_MS) -> None:
        """Use the log's Redis; look up the number at some `ages` (milliseconds)."""
        self._ages = tuple(ages)
        self.audits: dict[int, Audit] = {}
        self._redis = redis
        self._keys = Keys(settings.namespace)
        self._partitions = range(settings.partitions)

    def look(self, settled: Mapping[int, Place] | None = None) -> dict[int, Sight]:
        """Look at every partition; one whose key is not ours is left out.

        Args:
            settled: places to look before and behind, by partition.

        Raises:
            redis.RedisError: no answer.
        """
        places = settled or {}
        calls = [self._call(partition, places.get(partition)) for partition in self._partitions]
        replies = scripts.run_many(self._redis, calls)
        return {
            partition: _sight(reply)
            for partition, reply in zip(self._partitions, replies, strict=True)
            if not _is_foreign(reply)
        }

    def audit(self, sights: Mapping[int, Sight]) -> None:
        """Read on where the counts do not agree, up to the bound of one look.

        Raises:
            redis.RedisError: no answer.
        """
        pages = PAGES
        for partition, sight in sights.items():
            while pages and needs_audit(sight.view, self.audits.get(partition)):
                pages -= 1
                audit = audit_of(sight.view, self.audits.get(partition))
                self.audits[partition] = advanced(audit, self._page(partition, audit.upto), PAGE)

    def _call(self, partition: int, settled: Place | None) -> scripts.ScriptCall[Sequence[Any]]:
        entry = settled.entry if settled else ""
        return scripts.look(self._keys, partition, entry, SAMPLES, self._ages)

    def _page(self, partition: int, after: Place) -> Page:
        call = scripts.audit(self._keys, partition, after.entry, after.n, PAGE)
        page = scripts.run(self._redis, call)
        return Page(Place(page.entry, page.n), page.read, page.strays, page.breaks)


def _is_foreign(reply: Any) -> bool:
    """Say whether a partition's key is not ours.

    Raises:
        redis.RedisError: the server refused for another reason.
    """
    if not isinstance(reply, Exception):
        return False
    if isinstance(translated(reply, ""), ForeignKey):
        return True
    raise reply


def _sight(reply: Any) -> Sight:
    length, n, sealed, deleted, size, ids, ids_size, first, last, before, after, *rest = reply
    now, ages, sealed_at, unsealed = rest
    view = View(
        length=int(length),
        n=_number(n),
        sealed=_number(sealed),
        deleted=deleted.decode(),
        first=_place(first),
        last=_place(last),
        before=_place(before),
        after=_place(after),
        sealed_at=sealed_at.decode(),
        unsealed=_place(unsealed),
    )
    numbers = tuple(place.n if place else None for place in map(_place, ages))
    return Sight(view, int(size), int(ids), int(ids_size), int(now), numbers)


def _place(reply: Sequence[bytes]) -> Place | None:
    return Place(reply[0].decode(), int(reply[1])) if reply else None


def _number(raw: bytes) -> int:
    return int(raw) if raw.isdigit() else 0
