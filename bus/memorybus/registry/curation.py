"""What Redis knows of the curator: its runs, when the next one is due, and who runs now."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from redis import Redis

from memorybus.errors import MemoryBusError
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis
from memorybus.redis.facts import to_milliseconds
from memorybus.redis.hashes import decode_readable
from memorybus.redis.keys import Keys
from memorybus.redis.locks import ExpiringLock

LEASE_MS = 60_000  # milliseconds after which a run that shows no life makes room for another one
RUNS_KEPT = 100  # how many runs are remembered, the newest (G10); their changes stay in the history
_DUE = "due"
_RUN = "run:"
Phase = Literal["ageing", "repetitions", "asking", "done"]


class CuratorBusy(MemoryBusError):
    """Another run of the curator works now."""


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that shall be archived, and which of its owner stands for it."""

    memory: str  # its name
    successor: str  # the name of the memory that stands for it; "" for none
    agent: str
    user: str
    workspace: str = ""
    reason: str = ""  # why, for people
    text: str = ""  # what the successor says, if it does not exist yet
    cited: tuple[str, ...] = ()  # the memories that this rests on: all must be as they were


class CuratorRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run."""

    id: str  # 32 hex digits; the events of the run carry it
    by: str  # who began it
    began: int  # when, milliseconds of the Redis server
    phase: Phase = "ageing"  # what it does, or did when it was killed
    ended: int = 0  # when it was over, milliseconds; 0 if it is not
    memories: int = 0  # how many memories it looked at
    counts: dict[str, int] = {}  # how many memories it gave each state
    waiting: tuple[Repetition, ...] = ()  # repetitions that wait for a person
    rejected: tuple[Repetition, ...] = ()  # those of them that a person rejected
    unable: dict[str, str] = {}  # providers that it could not see, and "model", with the reason
    judged: tuple[str, ...] = ()  # digests of what a model was shown together; see `proposing`
    tokens: int = 0  # how many that took
    refused: tuple[str, ...] = ()  # why proposals of the model were refused
    failed: str = ""  # why it failed; "" if it did not


class CuratorRuns:
    """Reads and writes the runs. Belongs to one thread; raises `LogError` if Redis is away."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.curator
        self._lease = keys.curator_lease

    def now_ms(self) -> int:
        return to_milliseconds(ask_redis(self._redis.time, self._key))

    def put(self, run: CuratorRun) -> None:
        field, body = _RUN + run.id, msgspec.json.encode(run)
        ask_redis(lambda: self._redis.hset(self._key, field, body), self._key)
        gone = [_RUN + old.id for old in self.newest()[RUNS_KEPT:]]
        if gone:
            ask_redis(lambda: self._redis.hdel(self._key, *gone), self._key)

    def newest(self) -> Sequence[CuratorRun]:
        """Return the runs, the newest first; a record that is not readable is left out."""
        entries = ask_redis(lambda: self._redis.hgetall(self._key), self._key)
        bodies = {name: body for name, body in entries.items() if name.startswith(_RUN.encode())}
        readable = decode_readable(bodies, CuratorRun).values()
        return sorted(readable, key=lambda run: (run.began, run.id), reverse=True)

    # -- the lease ----------------------------------------------------------------------------

    def take_lease(self, run: str) -> None:
        if not self._lock(run).take():
            raise CuratorBusy(
                f"the curator runs already ({self.leased()}); wait for it: memorybus curator "
                f"status. A run that was killed makes room within {LEASE_MS // 1000} s"
            )

    def keep_lease(self, run: str, more_ms: int = 0) -> None:
        """Stay the only run, for so many milliseconds more than `LEASE_MS`."""
        if not self._lock(run).prolong(more_ms):
            raise CuratorBusy(
                f"this run was suspended for over {LEASE_MS // 1000} s and has ended; what it "
                "changed stays: memorybus curator report"
            )

    def release(self, run: str) -> None:
        self._lock(run).end()

    def leased(self) -> str:
        owner = self._lock("").holder()
        return owner.decode(errors="replace") if owner else ""

    def _lock(self, run: str) -> ExpiringLock:
        return ExpiringLock(self._redis, self._lease, run.encode(), LEASE_MS)

    # -- the schedule -------------------------------------------------------------------------

    def take_due(self, every_ms: int) -> bool:
        """Return whether a run is due, for one caller alone; the next is due after `every_ms`.

        At first sight of the bus nothing is due. A time further ahead than `every_ms` was written
        by a clock that was set back since, and counts as now.
        """
        now = self.now_ms()
        seen: bytes | None = ask_redis(lambda: self._redis.hget(self._key, _DUE), self._key)
        due = int(seen) if seen and seen.isdigit() else None
        if due is not None and now < due <= now + every_ms:
            return False
        call = scripts.change_field(self._key, _DUE, str(now + every_ms).encode(), seen=seen or b"")
        changed = ask_redis(lambda: scripts.run(self._redis, call), self._key)
        return due is not None and changed == seen
