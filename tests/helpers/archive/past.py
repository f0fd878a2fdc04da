"""A partition's past for tests: entries as they stand, some sealed, some of these trimmed."""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from memorybus.archive.archive import Archive
from memorybus.archive.format.parquet import RawEntry
from memorybus.config.settings import Settings
from memorybus.events import Envelope, Event, Scope, SessionRef, TurnCompleted, TurnStarted
from memorybus.history.history import History
from memorybus.ids import derived_id
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import START, EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, session_key
from memorybus.wire.codec import Encoder

PARTITION = 0
FIRST_MS = 1_700_000_000_000

KINDS = ("turn", "other", "volatile", "resent", "unknown", "damaged", "foreign")
"""Two people's turns, what is not archived, what came again, unreadable, and not ours."""


def kinds(most: int) -> st.SearchStrategy[list[str]]:
    """Return what draws entries of any kind, at least one of which is ours."""
    drawn = st.lists(st.sampled_from(KINDS), min_size=1, max_size=most)
    return drawn.filter(lambda some: set(some) != {KINDS[-1]})


class Past:
    """One partition of a log, with its archive.

    Attributes:
        log: the log.
        archive: its archive.
        events: what the log gave before anything was trimmed; entries of others are none.
    """

    def __init__(self, settings: Settings, archive: Archive | None = None) -> None:
        self.settings = settings
        self.redis = connect_redis(settings)
        self.keys = Keys(settings.namespace)
        self.log = EventLog(self.redis, settings)
        self.log.open()
        log_id = self.redis.hget(self.keys.meta, "log")
        assert isinstance(log_id, bytes)
        self._log_id = log_id.decode()
        self.archive = archive or self.open_archive()
        self.events: list[LoggedEvent] = []
        self._encoder = Encoder(256)
        self._n = self._written = 0

    def write(self, kinds: Sequence[str]) -> None:
        """Append an entry of each kind."""
        for kind in kinds:
            self._write(kind, self._written)
            self._written += 1
        self.events = self.log.read(PARTITION, START, 10_000)

    def _write(self, kind: str, place: int) -> None:
        entry = f"{FIRST_MS + place // 3}-{place % 3 + 1}"
        if kind == "foreign":
            self.redis.xadd(self.keys.log(PARTITION), {"hello": "world"}, id=entry)
            return
        self._n += 1
        name, body = self._body(kind)
        fields = {"n": str(self._n), name: body}
        self.redis.xadd(self.keys.log(PARTITION), fields, id=entry)
        self.redis.hset(self.keys.state(PARTITION), "n", self._n)

    def _body(self, kind: str) -> tuple[str, bytes]:
        if kind == "damaged":
            return "e", b"\x81no envelope"
        person = "bob" if kind == "other" else "ann"
        event: Event = TurnCompleted(user=f"word {self._n} " * 40, assistant="ok")
        if kind == "volatile":
            event = TurnStarted(number=self._n, message="hm")
        body = self._encoder.envelope(envelope(self._n, person, event))
        if kind == "unknown":
            body = body.replace(b"\xadTurnCompleted", b"\xadDreamsDreamed")
        return ("r" if kind == "resent" else "e"), self._encoder.pack(body)

    def seal(self, upto: int, cuts: Sequence[int] = ()) -> int:
        """Seal the first so many events, in segments that end where `cuts` say; return how many."""
        raw = self._raw(upto)
        if not raw:
            return 0
        ends = sorted({c for c in cuts if 0 < c < upto} | {upto})
        for start, end in pairwise([0, *ends]):
            if end > start:
                self.archive.publish(PARTITION, raw[start:end])
        self.redis.hset(
            self.keys.state(PARTITION),
            mapping={"sealed": raw[-1].n, "sealed_entry": raw[-1].entry},
        )
        return upto

    def _raw(self, upto: int) -> list[RawEntry]:
        """Return the first so many events as they stand in the log."""
        entries: Any = self.redis.xrange(self.keys.log(PARTITION))
        fields = {e.decode(): [p for pair in f.items() for p in pair] for e, f in entries}
        places = [event.position for event in self.events[:upto]]
        return [RawEntry(one.entry, one.n, fields[one.entry]) for one in places]

    def trim(self, first: int) -> None:
        """Remove what stands before an index from the log."""
        self.lose(range(first))

    def lose(self, indices: Collection[int]) -> None:
        """Remove some entries from the log, as a copy of before lacks them."""
        for index in indices:
            self.redis.xdel(self.keys.log(PARTITION), self.events[index].position.entry)

    def open_archive(self) -> Archive:
        """Open the archive as another process does that has read nothing of it."""
        return Archive.from_settings(self.settings, self._log_id)

    def history(self) -> History:
        return History(EventLog(self.redis, self.settings), self.archive)

    def close(self) -> None:
        self.archive.close()
        self.redis.close()


def envelope(n: int, person: str, event: Event) -> Envelope:
    """Return an envelope of a person's session."""
    return Envelope(
        id=derived_id("past", str(n)),
        key=session_key(Scope(agent="a", user=person), f"s-{person}"),
        scope=Scope(agent="a", user=person),
        session=SessionRef(f"s-{person}", f"s-{person}"),
        at=FIRST_MS + n,
        event=event,
    )


def read_all(
    history: History, count: int = 500, partition: int = PARTITION, **words: Any
) -> list[LoggedEvent]:
    """Return what a partition has, read page by page as a lane does."""
    found: list[LoggedEvent] = []
    after, after_n = START, 0
    while page := history.read(partition, after, count, after_n=after_n, **words).events:
        found += page
        after, after_n = page[-1].position.entry, page[-1].position.n
    return found


def as_told(events: Sequence[LoggedEvent]) -> list[bytes]:
    """Return events as bytes, to be compared."""
    return [msgspec.msgpack.encode(event) for event in events]


NewPast = Callable[[], AbstractContextManager[Past]]


@pytest.fixture
def new_past(redis_url: str, make_settings: Callable[..., Settings]) -> NewPast:
    """Return what makes a past of its own, in a namespace of its own."""

    @contextmanager
    def make() -> Iterator[Past]:
        name = f"t{uuid.uuid4().hex[:12]}"
        past = Past(make_settings(url=redis_url, namespace=name, partitions=2))
        try:
            yield past
        finally:
            past.close()

    return make
