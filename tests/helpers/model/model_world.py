"""The world of a model run: one real log, its agent, time that is moved by hand, and what is lost.

Leases expire by the model's clock: their time to live in Redis is shortened by what passes here.
Redis keeps what it had at the last `sync`, should it lose its tail.
"""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from memorybus.archive.archive import Archive
from memorybus.archive.format.parquet import RawEntry
from memorybus.config.settings import Settings
from memorybus.errors import LogError
from memorybus.events import Envelope, Scope, SessionRef, TurnCompleted
from memorybus.ids import checksum, derived_id, new_id
from memorybus.log.stream import EventLog, read_entries
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.producers import read_taken_sequences
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import Sender
from memorybus.outbox.spool import Spool
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, partition_of, session_key
from memorybus.testing import FakeClock
from memorybus.wire.codec import Encoder

from helpers.processes.waiting import wait_until

PARTITIONS = 2
LEASE = 100.0

TIMES = {
    "lease": LEASE,
    "call_timeout": 60.0,
    "partitions": PARTITIONS,
    "spool_reserve": 0,
    "attempts": 4,
    "batch": 4,
    "window": 8,
    "concurrency": 3,
}
"""Small numbers, so that a few events fill batches and windows."""


class AgentDied(BaseException):
    """Ends an agent inside `Sender.send`."""


class Said(msgspec.Struct, frozen=True):
    """A published event."""

    number: int
    id: str
    key: str
    partition: int
    fate: str
    body: bytes


class Held(msgspec.Struct, frozen=True):
    """A key of Redis as it was at a moment: its dump, its time to live (ms), and when that was."""

    dump: bytes
    ttl: int
    at: float


class World:
    """See the module.

    Attributes:
        settings: of everything in it.
        clock: its time.
        redis: a client for looking, and for what is done behind the bus's back.
        said: what was published, by key, in order.
        tails_lost: how often Redis lost its tail.
        trimmed: by partition, up to which number the log was trimmed.
    """

    def __init__(self, url: str, directory: Path) -> None:
        self.settings = Settings(
            url=url, namespace=f"m{new_id()[-12:]}", data_dir=directory, **TIMES
        )
        self.clock = FakeClock()
        self.redis = connect_redis(self.settings)
        self.keys = Keys(self.settings.namespace)
        self.log = EventLog(self.redis, self.settings)
        self.log.open()
        self.said: dict[str, list[Said]] = {}
        self.tails_lost = 0
        self.trimmed = dict.fromkeys(range(PARTITIONS), 0)
        self._numbers = itertools.count(1)
        self._encoder = Encoder(self.settings.compress_min_bytes)
        self._files = SpoolFiles.from_settings(self.settings, new_id, self.clock)
        self._spool: Spool = self._files.claim()
        self._sender: Sender | None = None
        self._dies_at = ""
        self._shifted_at = time.monotonic()
        self.sync()

    def close(self) -> None:
        self._spool.close()
        keys = list(self._all_keys())
        if keys:
            self.redis.delete(*keys)
        self.redis.close()

    # -- the agent --------------------------------------------------------------------------------

    def publish(self, root: str, fate: str) -> None:
        """Take an event into the spool."""
        number = next(self._numbers)
        event = TurnCompleted(user=f"turn {number}", assistant=fate)
        envelope = Envelope(
            id=derived_id("model", number),
            key=session_key(Scope(), root),
            scope=Scope(),
            session=SessionRef(id=root, root=root),
            at=self.clock.now_ms(),
            event=event,
        )
        partition = partition_of(envelope.key, PARTITIONS)
        said = Said(number, envelope.id, root, partition, fate, self._encoder.envelope(envelope))
        self.said.setdefault(root, []).append(said)
        self._spooled(said)

    def publish_again(self, said: Said) -> None:
        """Take an event in that was published before, as a hook that fires twice does."""
        self._spooled(said)

    def _spooled(self, said: Said) -> None:
        self._spool.append(said.partition, bytes.fromhex(said.id), checksum(said.body), said.body)

    def send(self, dies_at: str = "") -> None:
        """Send all that is in the spool, as far as Redis takes it; or die on the way."""
        self._dies_at = dies_at
        try:
            sender = self._connected()
            while sender.send():
                pass
            sender.catch_up()
        except LogError:
            self._sender = None
        except AgentDied:
            self.agent_begins_anew()
        self._dies_at = ""

    def agent_begins_anew(self) -> None:
        """Another process takes the spool over."""
        self._sender = None
        self._spool.close()
        self._spool = self._files.claim()

    def tidy_spool(self) -> None:
        """Forget what Redis has had long enough to have it on disk."""
        try:
            sender = self._connected()
            sender.confirm()
            sender.catch_up()
            sender.delete_upto(self._synced_upto)
        except LogError:
            self._sender = None

    @property
    def unsent(self) -> int:
        """How many rows Redis has not taken yet."""
        sender = self._connected()
        return self._spool.count_after(sender.cursor) + sender.lagging

    def _connected(self) -> Sender:
        if self._sender is None:
            self._sender = Sender(
                self._spool, self.redis, SendingContext(self.settings, crash=self._pass)
            )
            self._sender.resync()
        return self._sender

    def _pass(self, point: str) -> None:
        if point == self._dies_at:
            raise AgentDied

    # -- time -------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Move the clock, and all leases in Redis with it."""
        self.clock.advance(seconds)
        real, self._shifted_at = self._shifted_at, time.monotonic()
        elapsed = self._shifted_at - real
        names = [name for name in self._all_keys() if b":lease:" in name]
        for name in names:
            left = self.redis.pttl(name) / 1000
            left = min(LEASE, left + elapsed) - seconds
            if left > 0:
                self.redis.pexpire(name, round(left * 1000))
            else:
                self.redis.delete(name)

    # -- what befalls the log ---------------------------------------------------------------------

    def sync(self) -> None:
        """Redis writes all it has to its disk."""
        now = self.clock.monotonic()
        self._synced = {
            name: Held(self.redis.dump(name), self.redis.pttl(name), now)
            for name in self._all_keys()
        }
        self._synced_trimmed = dict(self.trimmed)
        self._synced_n = {head.partition: head.n for head in self.log.heads()}
        self._synced_upto = self._taken_upto()

    def _taken_upto(self) -> int:
        """Return the last sequence up to which Redis has every row of the spool."""
        upto = 0
        there = read_taken_sequences(self.redis, self.keys, PARTITIONS, self._spool.producer)
        for sequence, partition, *_ in self._spool.rows_after(0, 100_000, 1 << 30):
            if sequence > there.get(partition, 0):
                break
            upto = sequence
        return upto

    def lose_tail(self, *, told: bool) -> None:
        """Redis dies and comes back as it was at the last `sync`.

        The workers' connections break; the agent's only if it is `told`, else it finds out.
        """
        self.tails_lost += 1
        keys = list(self._all_keys())
        self.redis.delete(*keys)
        for name, held in self._synced.items():
            self._restore(name, held)
        for name in self._all_keys():
            if b":lane:" in name or name.endswith(b":state"):  # their server runs no more
                self.redis.hset(name, "run", f"another {self.tails_lost}")
        self.trimmed = dict(self._synced_trimmed)
        self._until_ids_are_new()
        self.redis.client_kill_filter(_type="normal", skipme=True)
        if told:
            self._sender = None

    def _restore(self, name: bytes, held: Held) -> None:
        left = 0
        if held.ttl > 0:
            left = held.ttl - round((self.clock.monotonic() - held.at) * 1000)
            if left <= 0:
                return
        self.redis.restore(name, left, held.dump)

    def _until_ids_are_new(self) -> None:
        """A server takes longer to start than a millisecond: no id of an entry comes again."""
        then = self.redis.time()
        wait_until(lambda: self.redis.time() > (then[0], then[1] + 2_000), "another millisecond")

    def trim(self, partition: int, upto: int) -> None:
        """Somebody seals what is on the disk of Redis, and trims it; the log says so (G7)."""
        upto = min(upto, self._synced_n[partition])
        events = self.log.read(partition, count=10_000)
        later = next((e for e in events if e.position.n > upto), None)
        if later is not None and upto > self.trimmed[partition]:
            self._seal(partition, upto)
            self.redis.xtrim(
                self.keys.log(partition), minid=later.position.entry, approximate=False
            )
            self.redis.hset(self.keys.state(partition), "sealed", upto)
            self.trimmed[partition] = upto

    def _seal(self, partition: int, upto: int) -> None:
        entries = [
            RawEntry(entry.decode(), n, fields)
            for entry, fields in read_entries(self.redis, self.keys.log(partition), "-", count=upto)
            if (n := int(fields[1])) <= upto
        ]
        log_id = self.redis.hget(self.keys.meta, "log")
        assert isinstance(log_id, bytes)
        archive = Archive.from_settings(self.settings, log_id.decode())
        archive.publish(partition, entries)
        archive.close()

    def _all_keys(self) -> Iterator[bytes]:
        return iter(list(self.redis.scan_iter(match=f"{self.settings.namespace}:*", count=1_000)))
