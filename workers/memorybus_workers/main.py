"""The worker process: composition root, signals, exit codes.

Threads: one per provider (its lanes), the tail, the leases, and a keeper that adopts spools,
watches for hung calls and shows that the worker lives. Recalls run in child processes, so that a
slow query never delays a lane.
"""

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence

import msgspec
from memorybus import logs
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import LogUnavailable, MemoryBusError, ProviderHung
from memorybus.ids import new_id, new_rng
from memorybus.keys import Keys
from memorybus.links import connect_redis
from memorybus.log import EventLog, Server
from memorybus.orphans import drain_orphans
from memorybus.retrying import backoff
from memorybus.roster import BEAT, ProviderInfo, Roster, WorkerInfo
from memorybus.settings import Settings
from memorybus.spool_files import SpoolFiles
from memorybus.testing import crash_points
from memorybus_providers.base import MemoryProvider
from redis.exceptions import RedisError

from memorybus_workers.children import JobProcesses
from memorybus_workers.host import ProviderHost
from memorybus_workers.instances import make
from memorybus_workers.lane_set import Surroundings
from memorybus_workers.leases import Leases
from memorybus_workers.tail import Tail

_log = logging.getLogger("memorybus")

_READY = 30.0
_KEEP = 0.5
_ADOPT_EVERY = 5.0
_REMIND = 30.0
_START_REDIS = "start it with `memorybus up`, or name another with --url or MEMORYBUS_URL"


class Worker:
    """One worker process.

    Args:
        settings: see `Settings`.
        providers: the instances to serve, in the order of recall.
        jobs: how many recall processes to run for each provider.
        clock: time.
        log: form of their logs.
    """

    def __init__(
        self,
        settings: Settings,
        providers: Sequence[str],
        jobs: int,
        clock: Clock = SYSTEM,
        log: logs.Form = "text",
    ) -> None:
        """Prepare; `run` works."""
        self.failed = False
        self.id = f"{socket.gethostname()}-{os.getpid()}-{new_id()[-6:]}"
        self._settings = settings
        self._providers = tuple(providers)
        self._clock = clock
        self._rng = new_rng()
        self._stop = threading.Event()
        self._redis = connect_redis(settings)
        self._leases = Leases(settings, clock, self.id)
        self._children = JobProcesses(settings, self._providers, jobs, clock, log)
        self._jobs = jobs
        self._served: dict[str, ProviderInfo] = {}
        self._complaint = ""
        self._hosts: list[ProviderHost] = []

    def stop(self) -> None:
        """Ask the worker to end: each lane finishes its batch, leases are given up."""
        self._stop.set()

    def run(self, on_ready: "ReadyCallback | None" = None) -> None:
        """Work until `stop`.

        Args:
            on_ready: called once the lanes have been tried for, with the worker's id.

        Raises:
            WrongPartitionCount, UnsafeRedis: the log cannot be used as it is.
            MissingProvider, ConfigError: a provider cannot be made.
        """
        kinds = {name: type(make(self._settings, name, self._clock)) for name in self._providers}
        server = self._opened_log()
        if server is None:
            return
        self._register(kinds)
        tail = Tail(self._settings, self._clock, self._rng, self._tell)
        self._hosts = [self._host(name, server) for name in self._providers]
        try:
            self._start(tail)
            if on_ready is not None:
                on_ready(self.id)
            self._keep()
        finally:
            self._end(tail)

    def _opened_log(self) -> Server | None:
        """Wait for Redis, however long; None if the worker is told to end before."""
        failures = 0
        told_at = -_REMIND
        while not self._stop.is_set():
            try:
                return EventLog(self._redis, self._settings).open()
            except LogUnavailable as error:
                if self._clock.monotonic() - told_at >= _REMIND:
                    told_at = self._clock.monotonic()
                    _log.warning("waiting for Redis: %s; %s", error, _START_REDIS)
                self._stop.wait(backoff(failures, self._rng))
                failures += 1
        return None

    def _register(self, kinds: dict[str, type[MemoryProvider]]) -> None:
        self._served = {
            name: ProviderInfo(
                kind=self._settings.provider_kind(name),
                delivery=provider.delivery,
                placement=provider.placement,
                order=order,
                recall=provider.capabilities.recall,
            )
            for order, (name, provider) in enumerate(kinds.items())
        }
        self._roster().register(self._served)

    def _host(self, name: str, server: Server) -> ProviderHost:
        crash = crash_points(self._settings.crash_at)
        around = Surroundings(
            settings=self._settings,
            clock=self._clock,
            rng=self._rng,
            leases=self._leases,
            crash=crash,
            entries_read=server.counts_entries_read,
        )
        return ProviderHost(name, lambda: make(self._settings, name, self._clock, crash), around)

    def _start(self, tail: Tail) -> None:
        self._leases.start()
        for host in self._hosts:
            host.start()
        tail.start()
        self._children.start()
        for host in self._hosts:
            host.wait_ready(_READY)
        with contextlib.suppress(MemoryBusError, RedisError, OSError):
            self._beat()

    def _tell(self, partitions: set[int]) -> None:
        for host in self._hosts:
            host.tell(partitions)

    # -- keeping ----------------------------------------------------------------------------------

    def _keep(self) -> None:
        adopter = threading.Thread(target=self._adopt, name="memorybus-adopter", daemon=True)
        adopter.start()
        beat_at = self._clock.monotonic() + BEAT
        while not self._stop.wait(_KEEP):
            try:
                self._watch()
                self._children.watch()
                if self._clock.monotonic() >= beat_at:
                    beat_at = self._clock.monotonic() + BEAT
                    self._beat()
                self._complaint = ""
            except (MemoryBusError, RedisError, OSError) as error:
                self._complain(str(error))

    def _watch(self) -> None:
        try:
            for host in self._hosts:
                host.watch(self._redis)
        except ProviderHung as error:
            _log.error("%s", error)
            self.failed = True
            self.stop()

    def _complain(self, text: str) -> None:
        """Say what keeps this worker from being seen, once."""
        if text != self._complaint:
            _log.warning("this worker does not show in `memorybus status`: %s", text)
        self._complaint = text

    def _beat(self) -> None:
        info = WorkerInfo(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            lanes=self._leases.count(),
            jobs=self._jobs,
            providers=self._providers,
            heartbeat_at=0,
        )
        roster = self._roster()
        roster.beat(info)
        roster.register(self._served)

    def _roster(self) -> Roster:
        return Roster(self._redis, Keys(self._settings.namespace))

    def _adopt(self) -> None:
        """Send what agents of this host left in their spools when they died."""
        settings = self._settings
        files = SpoolFiles.of(settings, new_id, self._clock)
        redis = connect_redis(settings)
        while not self._stop.is_set():
            try:
                sent = drain_orphans(
                    files, redis, settings, self._clock, stopping=self._stop.is_set
                )
                if sent:
                    _log.info("sent %d events that ended processes had left", sent)
            except Exception as error:
                _log.warning("spools of dead processes wait: %s", error)
            self._stop.wait(_ADOPT_EVERY)
        redis.close()

    def _end(self, tail: Tail) -> None:
        self._children.stop()
        for host in self._hosts:
            host.stop()
        for host in self._hosts:
            host.join()
        tail.stop()
        self._leases.stop()
        try:
            self._roster().leave(self.id)
        except (MemoryBusError, RedisError, OSError) as error:
            _log.debug("leaving: %s", error)
        self._redis.close()


class ReadyCallback:
    """Prints the ready line: one JSON object on stdout."""

    def __call__(self, worker: str) -> None:
        """Print it."""
        sys.stdout.buffer.write(msgspec.json.encode({"ready": True, "worker": worker}) + b"\n")
        sys.stdout.flush()


def run_worker(
    settings: Settings, providers: Sequence[str], jobs: int, log: logs.Form = "text"
) -> int:
    """Run a worker until SIGTERM or SIGINT; return the exit code, 1 if it had to give up."""
    worker = Worker(settings, providers, jobs, log=log)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: worker.stop())
    worker.run(ReadyCallback())
    return 1 if worker.failed else 0
