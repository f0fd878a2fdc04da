"""A log written to directly, without spools: for what is done to it behind the bus's back."""

from contextlib import closing

import redis
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.health.log_health import Examiner, LogHealth
from memorybus.log.continuity import Gap
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import EventLog
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Appended, OutgoingEvent


def read_health(settings: Settings) -> LogHealth:
    """Examine a log once, as `status` does."""
    with closing(connect_redis(settings)) as client:
        return Examiner(client, settings).examine()


def logged(settings: Settings, session: str = "") -> list[LoggedEvent]:
    """Return what the log has, one partition after the other; of one session, if it is named."""
    with closing(connect_redis(settings)) as client:
        log = EventLog(client, settings)
        pages = [log.read(place, count=100_000) for place in range(settings.partitions)]
    return [event for page in pages for event in page if session in ("", event.envelope.session.id)]


def reply_keys(client: redis.Redis, settings: Settings) -> list[bytes]:
    return list(client.scan_iter(f"{settings.namespace}:*:reply:*", count=10_000))


def publish(session: Session, first: int, count: int) -> None:
    """Publish numbered turns."""
    for number in range(first, first + count):
        session.turn_completed(f"turn {number}", "ok", ordinal=number)


def numbered(count: int) -> list[str]:
    """Return the texts of the first numbered turns."""
    return [f"turn {number}" for number in range(count)]


class Log:
    """A log whose partition `PARTITION` is written to, and looked at as `status` does."""

    PARTITION = 1

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.client = connect_redis(settings)
        self.keys = Keys(settings.namespace)
        self.key = self.keys.log(self.PARTITION)
        self._sequence = 0
        EventLog(self.client, settings).open()

    def append(self, count: int, body: bytes = b"x" * 200) -> None:
        """Append events as a publisher does."""
        first, self._sequence = self._sequence + 1, self._sequence + count
        numbers = range(first, self._sequence + 1)
        events = [OutgoingEvent(n, f"id{n}".encode(), b"digest..", body) for n in numbers]
        call = scripts.append(
            self.keys, self.PARTITION, "producer", 0, events, window_ms=10**9, max_ids=10**6
        )
        assert isinstance(scripts.run(self.client, call), Appended)

    def entry(self, n: int) -> bytes:
        """Return the id of the n-th entry; the log is whole."""
        found: list[tuple[bytes, object]] = self.client.xrange(self.key)
        return found[n - 1][0]

    def examine(self) -> LogHealth:
        """Examine it once, as `status` does."""
        return read_health(self.settings)

    def gaps(self) -> list[Gap]:
        """Return what is missing."""
        return self.examine().continuity.gaps
