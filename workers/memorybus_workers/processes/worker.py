"""A worker puts lanes, tail, leases and recall processes together.

The main thread shows that the worker lives, and watches for hung calls. Other threads work on the
lanes (one for each provider), follow the log (the tail), renew the leases, send the spools of dead
processes, archive, and start recall processes. Recalls run in these child processes, so that a slow
query never delays a lane.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Sequence

from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.backoff import backoff
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import AccessDenied, LogUnavailable, MemoryBusError
from memorybus.ids import new_id, new_mark, new_rng
from memorybus.log.stream import EventLog
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.producers import count_unsent
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import drain_orphans
from memorybus.redis.connect import connect_redis, translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.registry.roster import worker_id
from memorybus.registry.tools_note import ToolsNote
from memorybus.registry.work import WorkCounter
from memorybus.testing import crash_points
from memorybus.tracing.spans import Tracing
from redis.exceptions import RedisError

from memorybus_workers.archiving.archiver import ArchiverThread
from memorybus_workers.curating.schedule import CuratorSchedule
from memorybus_workers.deriving.thread import DerivingThread
from memorybus_workers.hosting.host import ProviderHost
from memorybus_workers.hosting.hosts import Hosts, remove_dropped
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.hosting.served import ServedInstances
from memorybus_workers.lanes.caution import IsolationProbe
from memorybus_workers.lanes.context import WorkerContext
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.lanes.news import News
from memorybus_workers.logs import RateLimitedWarning
from memorybus_workers.membership.presence import Presence
from memorybus_workers.processes.recall_processes import RecallProcesses
from memorybus_workers.watch.tail import Tail
from memorybus_workers.watch.watch import LogWatch

_log = logging.getLogger("memorybus")
_START_TIMEOUT = 30.0
_HOST_WAIT_SECONDS = 0.5
_ADOPT_SECONDS = 5.0
_REMINDER_SECONDS = 30.0
_END_SECONDS = 2.0


class Worker:
    """One worker process.

    `give_up` is called for a provider whose calls hang, since only the end of this process would
    free its threads, and that would stop the other providers' lanes; without it, the worker ends.
    """

    def __init__(
        self,
        settings: Settings,
        providers: Sequence[str],
        jobs: int,
        clock: Clock = SYSTEM,
        mark: str = "",
        only: str = "",
        *,
        among: Sequence[str] = (),
        give_up: Callable[[str], None] | None = None,
    ) -> None:
        self.failed = False
        self.id = worker_id(os.getpid(), mark or new_mark())
        self._settings = settings
        self._providers = tuple(providers)
        self._only = only
        self._among = tuple(among) or self._providers
        self._give_up = give_up
        self._clock = clock
        self._rng = new_rng()
        self._stop = threading.Event()
        self._redis = connect_redis(settings)
        self._leases = Leases(settings, clock, self.id)
        self._work = WorkCounter()
        self._jobs = jobs
        self._recalled: list[str] = []
        self._unseen = RateLimitedWarning(
            "cannot reach Redis, retrying; `memorybus status` may not list this worker: %s", clock
        )
        self._unsent = RateLimitedWarning("spools of dead processes wait: %s", clock)
        self._log_watch = LogWatch(settings, clock)
        self._curator = CuratorSchedule(settings, self._redis, clock)
        place = (settings, clock, self.id, new_rng(), crash_points(settings.crash_at))
        self._archiver = ArchiverThread(*place)
        self._deriver = DerivingThread(*place, lambda: self._recalled)

    def stop(self) -> None:
        self._stop.set()

    def run(self, on_ready: Callable[[str], None] | None = None) -> None:
        configured = {
            name: make_instance(self._settings, name, self._clock) for name in self._providers
        }
        if not self._wait_for_log():
            return
        self._served = ServedInstances(
            self._settings, self._clock, self._redis, configured, self._among, self._only
        )
        context = self._context()
        self._presence = Presence(context, self.id, self._served, self._jobs, self._redis)
        self._presence.register()
        # A host may take as long as a call may, and a little longer to release its lanes.
        self._hosts = Hosts(context, self._settings.call_timeout + _END_SECONDS)
        self._children = RecallProcesses(
            self._settings, self._jobs, self._clock, context.news.subscribe()
        )
        tail = Tail(self._settings, self._clock, self._rng, context.news.announce)
        try:
            self._start(tail)
            if on_ready is not None:
                on_ready(self.id)
            self._keep_watch()
        finally:
            self._end(tail)

    def _wait_for_log(self) -> bool:
        """Wait for Redis without a limit; return False if the worker is stopped meanwhile."""
        failures = 0
        warned_at = -_REMINDER_SECONDS
        while not self._stop.is_set():
            try:
                EventLog(self._redis, self._settings).open()
            except AccessDenied:
                raise
            except LogUnavailable as error:
                if self._clock.monotonic() - warned_at >= _REMINDER_SECONDS:
                    warned_at = self._clock.monotonic()
                    _log.warning("waiting for Redis: %s", error)
                self._stop.wait(backoff(failures, self._rng))
                failures += 1
            else:
                return True
        return False

    def _context(self) -> WorkerContext:
        return WorkerContext(
            settings=self._settings,
            clock=self._clock,
            rng=self._rng,
            leases=self._leases,
            isolation=IsolationProbe(),
            news=News(),
            tracing=Tracing(self._settings.namespace, self._clock),
            work=self._work,
        )

    def _start(self, tail: Tail) -> None:
        self._leases.start()
        self._serve_at_home()
        self._children.start()
        tail.start()
        self._wait_for_hosts(ProviderHost.wait_opened)
        with contextlib.suppress(MemoryBusError, RedisError, OSError):
            self._presence.update(self._hosts)
            self._wait_for_hosts(ProviderHost.wait_ready)
        self._log_watch.poll(self._redis)
        if not self._only:
            self._archiver.start()
            self._deriver.start()

    def _wait_for_hosts(self, there: Callable[[ProviderHost, float], bool]) -> None:
        until = self._clock.monotonic() + _START_TIMEOUT
        while not self._stop.is_set() and self._clock.monotonic() < until:
            if all(there(host, _HOST_WAIT_SECONDS) for host in self._hosts.all):
                return
            self._watch()

    def _serve_at_home(self) -> None:
        """Serve the instances whose home is here, and no others: a home may move while we work."""
        recalled = self._presence.recalled_instances()
        if recalled != self._recalled:
            self._children.serve(recalled)
            self._recalled = recalled
        self._hosts.serve(self._presence.roles())

    def _clear_dropped(self) -> None:
        running, alive = self._hosts.names, self._presence.alive
        remove_dropped(self._settings, self._redis, self._served.dropped, running, alive)

    # -- keeping ----------------------------------------------------------------------------------

    def _keep_watch(self) -> None:
        adopter = threading.Thread(target=self._adopt_spools, name="memorybus-adopter", daemon=True)
        adopter.start()
        while not self._stop.wait(self._presence.pause):
            try:
                self._watch()
                self._presence.update(self._hosts)
                self._serve_at_home()
                self._clear_dropped()
                self._log_watch.poll(self._redis)
                self._work.report(self._redis, Keys(self._settings.namespace))
                self._curator.poll()
            except RedisError as error:
                self._unseen.warn(translate_redis_error(error, redacted(self._settings.redis_url)))
            except (MemoryBusError, OSError) as error:
                self._unseen.warn(error)

    def _watch(self) -> None:
        for name, error in self._hosts.watch(self._redis).items():
            provider = self._served.provider_of(name)
            if provider not in self._presence.given_up:
                _log.error("%s", error)
                self._give_up_provider(provider)

    def _give_up_provider(self, provider: str) -> None:
        """Stop serving a provider because its calls hang; end if we served nothing else."""
        self._presence.give_up(provider)
        if self._give_up is not None and set(self._providers) > self._presence.given_up:
            self._give_up(provider)
        else:
            self.failed = True
            self.stop()

    def _adopt_spools(self) -> None:
        """Send the events that agents of this host left in their spools when they died."""
        settings = self._settings
        context = SendingContext(settings, self._clock, self._rng)
        files = SpoolFiles.from_settings(settings, context.new_id, self._clock)
        redis = connect_redis(settings)
        note = ToolsNote(settings, self._clock, new_id)
        while not self._stop.is_set():
            try:
                note.refresh()  # so that agents of this host know the tools when they start
                sent = drain_orphans(files, redis, context, self._stop.is_set)
                self._presence.note_spools(count_unsent(settings, redis))
                if sent:
                    _log.info("sent %d events that ended processes had left", sent)
            except Exception as error:
                self._unsent.warn(error)
            self._stop.wait(_ADOPT_SECONDS)
        redis.close()

    def _end(self, tail: Tail) -> None:
        self._children.stop()
        self._hosts.stop()
        self._archiver.stop()
        self._curator.stop()
        self._deriver.stop()
        tail.stop()
        self._leases.stop()
        self._presence.leave()
        with contextlib.suppress(RedisError, OSError):
            self._work.report(self._redis, Keys(self._settings.namespace))
        self._redis.close()
