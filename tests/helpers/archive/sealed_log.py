"""A log of numbered turns that archivers seal, and what of it is where."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from memorybus.archive.archive import Archive
from memorybus.config.settings import Settings
from memorybus.events import Envelope, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus.log.stream import EventLog
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, lane_name, session_key
from memorybus.redis.scripts import Appended, OutgoingEvent
from memorybus.wire.codec import Encoder
from memorybus_workers.archiving.archiver import run_once

QUICK: dict[str, Any] = {
    "partitions": 2,
    "seal_after": 0.0,
    "segment_age": 0.0,
    "segment_events": 50,
    "hot_window": 0.0,
}
"""Settings with which everything is sealed and trimmed at once."""


class SealedLog:
    """Partition `PARTITION` of a log, written to as a publisher does."""

    PARTITION = 1

    def __init__(self, settings: Settings) -> None:
        # An archiver that stood still for a moment keeps its lane.
        self.settings = msgspec.structs.replace(settings, lease=max(settings.lease, 30.0))
        self.redis = connect_redis(settings)
        self.keys = Keys(settings.namespace)
        self.key = self.keys.log(self.PARTITION)
        self.state = self.keys.state(self.PARTITION)
        EventLog(self.redis, settings).open()
        self._encoder = Encoder(256)
        self._sequence = 0

    def append(self, count: int, *, words: int = 20, user: str = "ann") -> None:
        """Append turns."""
        first, self._sequence = self._sequence + 1, self._sequence + count
        events = [self._turn(n, words, user) for n in range(first, self._sequence + 1)]
        for start in range(0, count, 200):
            page = events[start : start + 200]
            call = scripts.append(
                self.keys, self.PARTITION, "p", 0, page, window_ms=10**9, max_ids=10**6
            )
            assert isinstance(scripts.run(self.redis, call), Appended)

    def grow(self, count: int = 50) -> None:
        """Append turns and seal them."""
        self.append(count)
        run_once(self.settings)

    def _turn(self, n: int, words: int, user: str) -> OutgoingEvent:
        envelope = Envelope(
            id=derived_id("turn", str(n)),
            key=session_key(Scope(agent="a", user=user), "s"),
            scope=Scope(agent="a", user=user),
            session=SessionRef(id="s", root="s"),
            at=int(self.redis.time()[0]) * 1000,
            event=TurnCompleted(user=f"turn {n:05d} " + "word " * words, assistant="ok"),
        )
        body = self._encoder.pack(self._encoder.envelope(envelope))
        return OutgoingEvent(n, envelope.id.encode(), b"digest..", body)

    def archive(self) -> Archive:
        """Return the archive as a reader that opens it now."""
        found = self.redis.hget(self.keys.meta, "log")
        assert isinstance(found, bytes)
        return Archive.from_settings(self.settings, found.decode())

    def archived(self) -> list[int]:
        """Return the numbers of the archive's rows, in order."""
        archive, found, after = self.archive(), list[int](), "0-0"
        while page := archive.read(self.PARTITION, after, 200):
            found += [event.position.n for event in page]
            after = page[-1].position.entry
        archive.close()
        return found

    def logged(self) -> list[int]:
        """Return the numbers of the log's entries, in order."""
        entries: Any = self.redis.xrange(self.key)
        return [int(fields[b"n"]) for _, fields in entries]

    def sealed(self) -> int:
        """Return the number up to which Redis knows the partition to be sealed."""
        return int(self.redis.hget(self.state, "sealed") or 0)

    def head(self) -> int:
        """Return the last number given."""
        return int(self.redis.hget(self.state, "n") or 0)

    def assert_whole(self) -> None:
        """Every number is in the archive or the log, the archive's once and without a gap."""
        rows, head = self.archived(), self.head()
        assert rows == list(range(1, len(rows) + 1))
        kept = self.logged()
        assert kept == sorted(set(kept))
        assert set(rows) | set(kept) == set(range(1, head + 1))
        assert self.sealed() <= len(rows)


@pytest.fixture
def log(redis_client: redis.Redis, make_settings: Callable[..., Settings]) -> Iterator[SealedLog]:
    """Return a log of its own, on the test's server, with `QUICK` settings."""
    found = SealedLog(make_settings(**QUICK))
    yield found
    found.redis.close()


def newest_manifest(settings: Settings, partition: int = SealedLog.PARTITION) -> Path:
    """Return the file of a partition's newest manifest."""
    return max(settings.data_dir.glob(f"archive/*/*/p{partition:02d}/manifest-*"))


def refused(log: SealedLog) -> str:
    """Seal nothing; return what keeps the partition from being sealed."""
    done = run_once(log.settings)
    assert done.events == 0
    return done.errors.get(lane_name(log.PARTITION), "")


def may_stay(log: SealedLog) -> None:
    """Carry out the remedy that an archiver names for a partition that another Redis sealed."""
    command, key, field = refused(log).split("redis-cli ")[1].split(";")[0].split()
    assert command == "hdel"
    assert log.redis.hdel(key, field) == 1


def found_by_commands(log: SealedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command line find a log."""
    for name in ("url", "namespace", "data_dir", "partitions"):
        monkeypatch.setenv(f"MEMORYBUS_{name.upper()}", str(getattr(log.settings, name)))


@pytest.fixture
def known_log(log: SealedLog, monkeypatch: pytest.MonkeyPatch) -> SealedLog:
    """Return a log of which 50 events are sealed, and that the command line finds."""
    found_by_commands(log, monkeypatch)
    log.grow()
    return log
