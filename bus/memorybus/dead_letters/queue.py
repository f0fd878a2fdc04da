"""The dead letters of a whole log, for operators: reads them and sends requests about them (G6)."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.dead_letters.records import (
    PAGE,
    DeadLetter,
    LetterBox,
    LetterRequest,
    LetterRequests,
    StoredLetter,
    group_of,
)
from memorybus.errors import ArchiveError
from memorybus.events import Omission, Omitted
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent, previous_entry_id
from memorybus.log.stream import EventLog
from memorybus.redis.connect import ask_redis, connect_redis, redis_errors
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

_CAN_ONLY_BE_DISCARDED = "it can only be discarded"
EVENT_GONE = f"the history has the event no more: {_CAN_ONLY_BE_DISCARDED}"

_LEFT_OUT: Mapping[Omission, str] = {
    "volatile": (
        "the event was volatile, and the archive does not keep what it said: "
        f"{_CAN_ONLY_BE_DISCARDED}"
    ),
    "retention": (
        f"the event is older than the archive keeps what was said: {_CAN_ONLY_BE_DISCARDED}"
    ),
    "forgotten": f"the event is forgotten, as somebody asked for: {_CAN_ONLY_BE_DISCARDED}",
}


class LetterEvent(msgspec.Struct, frozen=True):
    """The event of a dead letter, as it was published."""

    event: LoggedEvent | None  # the event; None if it is not available
    why: str = ""  # why it is not available; empty otherwise


def published_event(
    history: History, partition: int, letter: DeadLetter, *, shown: bool = False
) -> LetterEvent:
    """Return the event of a dead letter; a forgotten one is not returned.

    If people will see it (`shown`), it is not returned while the tombstones cannot be read.
    """
    try:
        return _find_event(history, partition, letter, shown=shown)
    except ArchiveError as error:
        return LetterEvent(None, f"the event cannot be read now: {error}")


def _find_event(
    history: History, partition: int, letter: DeadLetter, *, shown: bool
) -> LetterEvent:
    if not letter.n:
        return LetterEvent(None, f"memorybus did not write this record: {_CAN_ONLY_BE_DISCARDED}")
    with contextlib.nullcontext() if shown else contextlib.suppress(ArchiveError):
        history.forgotten_queries()  # from here on, `read` honours the tombstones
    for event in history.read(
        partition, previous_entry_id(letter.entry), 1, after_n=letter.n - 1
    ).events:
        if event.position.entry == letter.entry:
            return _check_event(event, letter)
    return LetterEvent(None, EVENT_GONE)


def _check_event(event: LoggedEvent, letter: DeadLetter) -> LetterEvent:
    what = event.envelope.event
    if isinstance(what, Omitted):
        return LetterEvent(None, _LEFT_OUT[what.why])
    return (
        LetterEvent(event)
        if event.envelope.id == letter.event_id
        else LetterEvent(None, EVENT_GONE)
    )


LaneId = tuple[str, int]  # a provider's name and a partition


class LocatedLetter(msgspec.Struct, frozen=True):
    """A dead letter and its lane."""

    provider: str  # the instance that refused its event, or an earlier event of its key
    partition: int  # the partition of its lane
    stored: StoredLetter  # the letter in its present state

    @property
    def lane(self) -> LaneId:
        return self.provider, self.partition

    @property
    def lane_and_key(self) -> tuple[str, int, str]:
        """Its lane and order key; letters that share both are kept in order."""
        return self.provider, self.partition, self.stored.letter.key

    @property
    def group(self) -> str:
        """The short id of its error group; empty if it only waits behind another letter."""
        letter = self.stored.letter
        return group_of(self.provider, letter.reason) if letter.refused else ""


class DeadLetters:
    """Dead letters of all providers. Use from one thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._redis = connect_redis(settings)
        self._where = redacted(settings.redis_url)
        self._history = History.from_settings(self._redis, settings)

    def close(self) -> None:
        self._history.close()
        self._redis.close()

    def check(self) -> None:
        EventLog(self._redis, self._settings).check_partitions()

    def providers(self) -> list[str]:
        """Return all registered instances, including copies, and those that are only configured."""
        registered = list(Roster(self._redis, self._keys).instances())
        return registered + [p for p in self._settings.providers if p not in registered]

    def letters(self, providers: Iterable[str]) -> list[LocatedLetter]:
        return [dead for provider in providers for dead in self._letters_of(provider)]

    def first_letters(self, provider: str, each: int) -> list[LocatedLetter]:
        lanes = range(self._settings.partitions)
        with redis_errors(self._where):
            return [
                LocatedLetter(provider, partition, stored)
                for partition in lanes
                for stored in self._box(provider, partition).page(count=each)
            ]

    def _letters_of(self, provider: str) -> list[LocatedLetter]:
        with redis_errors(self._where):
            return [
                LocatedLetter(provider, partition, stored)
                for partition in range(self._settings.partitions)
                for stored in self._box(provider, partition).all()
            ]

    def event(self, dead: LocatedLetter, *, shown: bool = True) -> LetterEvent:
        """Return a letter's event as it was published, from wherever the history has it."""
        return published_event(self._history, dead.partition, dead.stored.letter, shown=shown)

    def letter(self, lane: LaneId, letter_id: str) -> LocatedLetter | None:
        with redis_errors(self._where):
            letter = self._box(*lane).letter(letter_id)
        return LocatedLetter(*lane, letter) if letter else None

    def letter_at(self, lane: LaneId, entry: str) -> LocatedLetter | None:
        with redis_errors(self._where):
            letter = self._box(*lane).letter_at(entry)
        return LocatedLetter(*lane, letter) if letter else None

    def later_of_key(self, dead: LocatedLetter, count: int = PAGE) -> list[LocatedLetter]:
        """Return the letters of the same key among the next `count` of a letter's lane."""
        with redis_errors(self._where):
            page = self._box(*dead.lane).page(dead.stored.id, count)
        following = [LocatedLetter(*dead.lane, letter) for letter in page]
        return [letter for letter in following if letter.lane_and_key == dead.lane_and_key]

    def send(self, provider: str, requests: Sequence[LetterRequest]) -> None:
        with redis_errors(self._where):
            self._requests(provider).send(requests)

    def waiting_requests(self, provider: str) -> Collection[str]:
        with redis_errors(self._where):
            return self._requests(provider).waiting_fields().keys()

    def count(self, lanes: Iterable[LaneId]) -> int:
        return self._sum(self._redis.xlen, (self._keys.dead(p, name) for name, p in lanes))

    def count_owned(self, lanes: Iterable[LaneId]) -> int:
        return self._sum(self._redis.exists, (self._keys.lease(p, name) for name, p in lanes))

    def _sum(self, command: Callable[[str], Any], keys: Iterable[str]) -> int:
        return int(ask_redis(lambda: sum(int(command(key)) for key in keys), self._where))

    def _box(self, provider: str, partition: int) -> LetterBox:
        return LetterBox(self._redis, self._keys, partition, provider)

    def _requests(self, provider: str) -> LetterRequests:
        return LetterRequests(self._redis, self._keys, provider)
