"""The history backward: the log from its end, then the archive, over all partitions.

What the newest events cost does not grow with the history. What is left out comes as a placeholder
until partitions are merged, so that none is read back further in time than the others.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from redis.exceptions import RedisError

from memorybus.codec import Decoder
from memorybus.damage import tell
from memorybus.errors import ArchiveError
from memorybus.events import Omitted
from memorybus.history_joined import Joined, Sealed
from memorybus.history_log import Entry, sifted
from memorybus.history_scan import newest_first
from memorybus.links import translated
from memorybus.log import FOREIGN, START, Head
from memorybus.logged import LoggedEvent, logged
from memorybus.plan import Plan
from memorybus.query import Query
from memorybus.sieve import Sieve

_FIRST, _MOST = 32, 512
"""Entries of a partition that are read at once: at first, and at most."""

_XREVRANGE = b"XREVRANGE"
"""As bytes, redis-py leaves the reply as it comes (see `memorybus.log`)."""

_END = f"{(1 << 64) - 1}-{(1 << 64) - 1}"


class Back:
    """Reads a history backward. Use from one thread; raises what `Joined` raises."""

    def __init__(
        self,
        history: Joined,
        query: Query,
        sealed: Callable[[], Query],
        damage: list[str] | None,
    ) -> None:
        """Read nothing yet.

        Args:
            history: archive and log.
            query: asked of the log.
            sealed: returns what is asked of the archive, when that is first needed.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        self._history = history
        self._query = query
        self._sealed = sealed
        self._damage = damage
        self._decoder = Decoder()

    def events(self, heads: Sequence[Head]) -> Iterator[LoggedEvent]:
        """Yield the wanted events up to the ends of partitions, newest first."""
        merged = newest_first(map(self._partition, heads))
        return (event for event in merged if type(event.envelope.event) is not Omitted)

    def _partition(self, head: Head) -> Iterator[LoggedEvent]:
        entry, n = _END, head.n + 1
        for event in self._logged(head):
            yield event
            entry, n = event.position.entry, event.position.n
        if n > 1:
            yield from self._archived(head.partition, entry)

    # -- the log ----------------------------------------------------------------------------------

    def _logged(self, head: Head) -> Iterator[LoggedEvent]:
        """Yield what the log has, page by page; a stranger has the number of what follows it."""
        if head.entry == START:
            return
        partition, next_n, count = head.partition, head.n + 1, _FIRST
        sieve = Sieve(Plan(query=self._query), partition, self._forgotten)
        last = "+" if head.entry == FOREIGN else head.entry
        while found := self._read(partition, last, count):
            for entry, fields in found:
                event = logged(partition, entry.decode(), fields, next_n, self._decoder)
                next_n = event.position.n
                yield sifted(event, sieve)
            last = f"({found[-1][0].decode()}"
            count = min(2 * count, _MOST)

    def _read(self, partition: int, last: str, count: int) -> list[Entry]:
        log = self._history.log
        key, untyped = log.keys.log(partition), log.redis
        ask: Any = untyped.execute_command
        try:
            found: list[Entry] = ask(_XREVRANGE, key, last, "-", "COUNT", count)
        except (RedisError, OSError) as error:
            raise translated(error, key) from error
        return found

    # -- the archive ------------------------------------------------------------------------------

    def _archived(self, partition: int, before: str) -> Iterator[LoggedEvent]:
        try:
            archive = self._history.sealed(partition)
            if archive is not None:
                yield from archive.back(partition, before, self._plan, self._damage)
        except ArchiveError as error:
            tell(error, self._damage)

    @cached_property
    def _plan(self) -> Plan:
        return Plan(query=self._sealed())

    @cached_property
    def _forgotten(self) -> tuple[Query, ...]:
        """What nobody shall read any more; the archive knows it."""
        try:
            archive = self._any()
            return tuple(one.query for one in archive.tombstones()) if archive else ()
        except ArchiveError as error:
            tell(error, self._damage)
            return ()

    def _any(self) -> Sealed | None:
        partitions = range(self._history.log.partitions)
        return next((one for p in partitions if (one := self._history.sealed(p))), None)
