"""Gives new numbers to events that were logged under numbers that the archive has.

This happens when Redis comes back with fewer events than the archive has (a restored copy, or a
replica that lacked the tail), and agents publish before a worker has noted the archive's end. All
events are still there, and only their numbers are wrong (G7).
"""

from typing import TypeVar

import msgspec
from memorybus.archive.archive import Archive
from memorybus.errors import ArchiveDiffers, ArchiveTaken, LeaseLost
from memorybus.log.entry import Place
from memorybus.log.inspection import PAGE, read_numbers
from memorybus.log.stream import START
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import ARCHIVE_LANE, Keys, lane_name
from memorybus.redis.scripts import OwnedLane
from redis import Redis

_T = TypeVar("_T")


class RepeatedNumbers(msgspec.Struct, frozen=True):
    """A partition in which numbers were given twice."""

    first: int  # the first number that was given twice
    known: str  # the log's last entry that the archive has; all entries after it get new numbers
    end: Place  # where the archive ends


class Renumbering:
    """Finds events whose numbers the archive has, too, and renumbers them."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    def find_behind(self, partition: int, end: Place) -> RepeatedNumbers | None:
        """Return the repeated numbers among the entries behind the archive's end; None for none."""
        place, done = end, False
        while not done:
            page = self._run(read_numbers(self._keys, partition, place, PAGE))
            repeated = next((after for before, after in page.breaks if after <= before), None)
            if repeated is not None:
                return RepeatedNumbers(repeated, end.entry, end)
            place, done = page.upto, page.done
        return None

    def mend(self, lane: OwnedLane, archive: Archive, repeated: RepeatedNumbers) -> None:
        """Give new numbers to the entries that the archive lacks.

        The entries are added again at new places, in their order, with a mark. Lanes that have seen
        them treat them as entries that Redis had lost (G4). Everything that a lane had noted by
        number is deleted, and each lane has to be acquired anew. Meanwhile Redis answers no other
        client.
        """
        call = scripts.renumber(
            lane,
            self._lanes(lane.partition),
            known=repeated.known,
            end=(repeated.end.entry, repeated.end.n),
            back=_place_before(archive, lane.partition, repeated),
        )
        try:
            written = self._run(call)
        except LeaseLost as error:
            taken = f"partition {lane_name(lane.partition)} has another archiver"
            raise ArchiveTaken(taken) from error
        if written is not None:
            raise ArchiveDiffers(_describe_other(lane, archive.where, repeated))

    def _lanes(self, partition: int) -> list[str]:
        """Return the keys of a partition's lanes; each lane has a consumer group on the log."""
        key = self._keys.log(partition)
        groups = ask_redis(lambda: self._redis.xinfo_groups(key), key)
        names = (group["name"].decode("utf-8", "surrogatepass") for group in groups)
        return [self._keys.lane(partition, name) for name in names if name != ARCHIVE_LANE]

    def _run(self, call: scripts.ScriptCall[_T]) -> _T:
        reply: _T = ask_redis(lambda: scripts.run(self._redis, call), call.request.keys[0])
        return reply


def _place_before(archive: Archive, partition: int, repeated: RepeatedNumbers) -> tuple[str, int]:
    events = archive.read_backward(partition, repeated.end.entry)
    places = (event.position for event in events if event.position.n < repeated.first)
    last = next(places, None)
    return (last.entry, last.n) if last else (START, repeated.first - 1)


def _describe_other(lane: OwnedLane, where: str, repeated: RepeatedNumbers) -> str:
    return (
        f"partition {lane_name(lane.partition)}: the archive at {where} continues to event "
        f"{repeated.end.n}, but does not have event {repeated.first} of this log: another Redis "
        f"that began as a copy of this one archives there, too. Nothing is sealed or trimmed. Let "
        f"each Redis have its own `archive` (stop the copy, or give it a copy of this directory); "
        f"then, if what is there may stay: redis-cli hdel {lane.keys.state(lane.partition)} "
        f'sealed_run; see docs/history.md, "Two logs, one archive"'
    )
