"""Starts a worker's recall processes at the first request for a recall, and keeps them.

A process needs a second until it answers, which is too long for a prompt. Until then a thread of
the worker answers the prompts of transactional providers: their code and state are in the worker
anyway, so that their recalls add no new way to harm it.
"""

import logging
import threading
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from memorybus.clock import Clock
from memorybus.config.settings import Settings, to_environ
from memorybus.errors import MemoryBusError
from memorybus.processes.child import ChildProcess
from memorybus.processes.commands import module_command
from memorybus.processes.keeper import Keeper
from memorybus.recall.queue import RecallDemand
from memorybus.redis.connect import translate_redis_error
from memorybus.testing import no_crash
from memorybus_providers.registry import load
from redis.exceptions import RedisError

from memorybus_workers.jobs.prompts import PromptAnswerer
from memorybus_workers.lanes.news import Inbox
from memorybus_workers.logs import RateLimitedWarning

_log = logging.getLogger("memorybus")
_POLL_SECONDS = 0.5
"""Seconds between looks for requests without a process, and for processes that have died."""

_IDLE_POLL_SECONDS = 2.0
"""Seconds between looks if no process runs and no event came for `_ALERT_SECONDS`."""

_ALERT_SECONDS = 60.0
"""Seconds after an event in which a recall is likely: an agent publishes before it asks."""

_STOP_SECONDS = 2.0
_MAX_RESTART_SECONDS = 5.0
"""The most seconds before a restart: meanwhile a session waits for its answer."""

_STARTING_SECONDS = 5.0
"""Seconds after the start of a provider's processes in which the worker answers prompts, too."""


class _ProviderRecalls:
    """One provider's recall processes, after its first request for a recall."""

    def __init__(self, provider: str, keepers: Sequence[Keeper], begun: float) -> None:
        self.provider = provider
        self.keepers = keepers
        self.begun = begun

    def poll(self) -> None:
        for keeper in self.keepers:
            death = keeper.poll()
            if death is not None:
                _log.warning(
                    "the recall process of %s %s; another starts in %.1f s",
                    self.provider,
                    f"ended with code {death.code}" if death.child else death,
                    death.delay,
                    extra={"provider": self.provider},
                )


class RecallProcesses:
    """Processes that run recall jobs, each for one provider, so that a slow one delays no other.

    An idle worker has none. The first prompt or job starts a provider's processes, which then run
    until the worker ends.
    """

    def __init__(self, settings: Settings, count: int, clock: Clock, news: Inbox) -> None:
        self._settings = settings
        self._environ = to_environ(settings)
        self._count = count
        self._clock = clock
        self._news = news
        self._alert_until = float("-inf")
        self._providers: Sequence[str] = ()
        self._within: Sequence[str] = ()
        self._recalling: list[_ProviderRecalls] = []
        self._answerers: dict[str, PromptAnswerer] = {}
        self._demand = RecallDemand(settings)
        self._unseen = RateLimitedWarning("requests for recalls cannot be seen: %s", clock)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memorybus-recalls", daemon=True)

    def start(self) -> None:
        if self._count:
            self._thread.start()

    def serve(self, providers: Collection[str]) -> None:
        with self._lock:
            gone = [recalls for recalls in self._recalling if recalls.provider not in providers]
            self._recalling = [recalls for recalls in self._recalling if recalls not in gone]
            self._providers = tuple(providers)
            self._within = [name for name in providers if self._is_transactional(name)]
        self._news.put()  # so that the thread looks now
        self._end_processes(gone)

    def _is_transactional(self, name: str) -> bool:
        return load(self._settings.provider_kind(name)).delivery == "transactional"

    def poll(self) -> None:
        with self._lock:
            for recalls in self._recalling:
                recalls.poll()
            running = {recalls.provider for recalls in self._recalling}
            asleep = [name for name in self._providers if name not in running]
        for name in self._demand.providers_with_work(asleep):
            self._begin(name)

    def _begin(self, name: str) -> None:
        with self._lock:
            if name in self._providers and name not in {
                recalls.provider for recalls in self._recalling
            }:
                begun = _ProviderRecalls(name, self._make_keepers(name), self._clock.monotonic())
                begun.poll()
                self._recalling.append(begun)

    def _answer_until_begun(self) -> None:
        starting = self._starting()
        for name in self._answerers.keys() - starting:
            self._answerers.pop(name).leave()
        for name in starting - self._answerers.keys():
            self._answerers[name] = PromptAnswerer(
                self._settings,
                name,
                no_crash,
                on_answer=partial(self._begin, name),
                on_hang=partial(self._begin, name),
            )
            self._answerers[name].start()

    def _starting(self) -> set[str]:
        now = self._clock.monotonic()
        with self._lock:
            begun = {recalls.provider: recalls.begun for recalls in self._recalling}
            return {n for n in self._within if now < begun.get(n, now) + _STARTING_SECONDS}

    def _make_keepers(self, name: str) -> list[Keeper]:
        start = partial(self._start_process, name)
        return [Keeper(start, self._clock, _MAX_RESTART_SECONDS) for _ in range(self._count)]

    def _start_process(self, name: str) -> ChildProcess:
        command = module_command("memorybus_workers", "jobs", "--provider", name)
        return ChildProcess(command, self._environ, _STOP_SECONDS, quiet=True)

    def stop(self) -> None:
        """End all processes: they have two seconds together, then they are killed."""
        self._stop.set()
        self._news.put()
        if self._thread.is_alive():
            self._thread.join()
        for answerer in self._answerers.values():
            answerer.stop()
        self.serve(())
        self._demand.close()

    def _end_processes(self, gone: Iterable[_ProviderRecalls]) -> None:
        children = [keeper.child for recalls in gone for keeper in recalls.keepers]
        running = [child for child in children if child is not None]
        for child in running:
            child.terminate()
        deadline = self._clock.monotonic() + _STOP_SECONDS
        for child in running:
            child.end(max(0.0, deadline - self._clock.monotonic()))

    def _run(self) -> None:
        while not self._is_over():
            try:
                self._answer_until_begun()
                self.poll()
            except RedisError as error:
                self._unseen.warn(translate_redis_error(error, "Redis"))
            except (MemoryBusError, OSError) as error:
                self._unseen.warn(error)

    def _is_over(self) -> bool:
        """Wait until it is time for the next look; say whether the thread has to end instead."""
        if self._recalling or self._clock.monotonic() < self._alert_until:
            self._stop.wait(_POLL_SECONDS)
        else:
            self._news.wait(_IDLE_POLL_SECONDS)
        if self._news.take():
            self._alert_until = self._clock.monotonic() + _ALERT_SECONDS
        return self._stop.is_set()
