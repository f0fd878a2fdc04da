"""Replay: the log from its beginning into a fresh instance of a provider (a first form).

The same lane loop as live, with another instance and an end: what was in the log when the replay
began. The instance has lanes, leases and a home of its own under its new name.
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import ConfigError
from memorybus.ids import new_id, new_rng
from memorybus.keys import Keys
from memorybus.links import connect_redis, translated
from memorybus.log import EventLog
from memorybus.settings import Settings
from memorybus.testing import crash_points
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.host import ProviderHost
from memorybus_workers.instances import make
from memorybus_workers.leases import Leases
from memorybus_workers.surroundings import Surroundings

_log = logging.getLogger("memorybus")

_TRIES = 5
_READY = 30.0
_LOOK = 0.05


class Progress(msgspec.Struct, frozen=True):
    """A progress line: events done of those the log held at the beginning."""

    done: int
    total: int


class Finished(msgspec.Struct, frozen=True):
    """The last line.

    Attributes:
        finished: False if the replay was interrupted; the same command goes on.
        provider: the instance whose kind and options were used.
        into: the instance that was filled.
        applied: events applied to it.
        parked: events put aside.
        home: where its state lies.
    """

    finished: bool
    provider: str
    into: str
    applied: int
    parked: int
    home: str


class Replay:
    """Fills a fresh instance from the log.

    Args:
        settings: see `Settings`.
        provider: the instance whose kind and options are used.
        into: the name of the new instance.
        tell: called with every `Progress`.
        clock: time.
    """

    def __init__(
        self,
        settings: Settings,
        provider: str,
        into: str,
        tell: Callable[[Progress], None],
        clock: Clock = SYSTEM,
    ) -> None:
        """Check names; touch nothing yet.

        Raises:
            ConfigError: the target is a live instance, or the name is none.
        """
        if into in settings.providers or into == provider:
            raise ConfigError(
                f"{into!r} is a live provider; replay goes into a fresh instance: choose a new name"
            )
        if not into.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(f"{into!r}: letters, digits, - and _ make an instance's name")
        self._settings = settings
        self._provider = provider
        self._into = into
        self._tell = tell
        self._clock = clock
        self._stop = threading.Event()
        self._keys = Keys(settings.namespace)

    def stop(self) -> None:
        """Interrupt it after the present batch; the same replay goes on from there."""
        self._stop.set()

    def run(self) -> Finished:
        """Apply everything that the log held when this began.

        Raises:
            LogUnavailable: Redis is away.
            ConfigError: the instance is filled already by another replay that runs now.
        """
        redis = connect_redis(self._settings)
        server = EventLog(redis, self._settings).open()
        leases = Leases(self._settings, self._clock, f"replay-{new_id()[-8:]}")
        leases.start()
        rng = new_rng()
        crash = crash_points(self._settings.crash_at)
        around = Surroundings(
            self._settings,
            self._clock,
            rng,
            leases,
            crash,
            server.counts_entries_read,
            answering=False,
        )
        settings = self._settings
        host = ProviderHost(
            self._into,
            lambda: make(settings, self._into, self._clock, crash, kind=self._provider),
            around,
        )
        make(settings, self._into, self._clock, kind=self._provider)  # refused now, not in a thread
        host.want(frozenset(range(settings.partitions)))
        host.start()
        try:
            finished = self._follow(redis, host, leases)
        finally:
            host.stop()
            host.join()
            leases.stop()
        done, parked = self._counts(redis)
        redis.close()
        home = str(settings.provider_home(self._into))
        return Finished(finished, self._provider, self._into, done - parked, parked, home)

    def _follow(self, redis: Redis, host: ProviderHost, leases: Leases) -> bool:
        """Tell how far it is until it is done; a backend that is down is waited for."""
        total = sum(head.n for head in EventLog(redis, self._settings).heads())
        host.wait_ready(_READY)
        if host.serving and leases.count() < self._settings.partitions:
            raise ConfigError(f"{self._into!r} is being filled by another replay; wait for its end")
        failures = 0
        while not self._stop.is_set():
            try:
                host.watch(redis)
                done = self._counts(redis)[0]
                failures = 0
            except RedisError as error:
                failures += 1
                if failures >= _TRIES:
                    raise translated(error, "replay") from error
                _log.warning("replay: %s; trying again", error)
                self._stop.wait(failures)
                continue
            self._tell(Progress(min(done, total), total))
            if done >= total:
                return True
            self._stop.wait(_LOOK)
        return False

    def _counts(self, redis: Redis) -> tuple[int, int]:
        with redis.pipeline(transaction=False) as pipe:
            for partition in range(self._settings.partitions):
                pipe.hmget(self._keys.lane(partition, self._into), "n", "parked")
            lanes = pipe.execute()
        return sum(int(n or 0) for n, _ in lanes), sum(int(parked or 0) for _, parked in lanes)


def run_replay(settings: Settings, provider: str, into: str) -> int:
    """Replay with progress as JSON lines on stdout; return the exit code."""

    def tell(line: Progress | Finished) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.flush()

    replay = Replay(settings, provider, into, tell)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: replay.stop())
    result = replay.run()
    tell(result)
    return 0 if result.finished else 1
