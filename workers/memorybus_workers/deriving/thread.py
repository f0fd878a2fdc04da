"""The deriver of a worker: a thread that looks now and then for sessions that are due."""

import random
import threading
from collections.abc import Callable, Collection
from functools import cached_property

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.ids import new_id
from memorybus.outbox.publisher import Publisher
from memorybus.outbox.rules import SendingContext
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.redis.locks import ExpiringLock
from memorybus.registry.lanes import LaneKeys
from memorybus.testing import CrashPoint
from memorybus.text.fence import escape
from memorybus.tracing.spans import Tracing
from memorybus_providers.deriving.deriver import Means, load_deriver
from memorybus_providers.deriving.model import ChatModel
from memorybus_providers.fact_provider import FactProvider
from redis.exceptions import RedisError

from memorybus_workers.calls.model_gate import Reservation, open_model
from memorybus_workers.deriving.round import MAX_DUE, DerivingRound
from memorybus_workers.hosting.instances import deriving_provider
from memorybus_workers.jobs.live import LiveInstances
from memorybus_workers.logs import RateLimitedWarning

ROUND_SECONDS = 30.0
"""Seconds between two looks: a session's summary need not be there at once."""

_SHARE = 0.1
"""The share of its time that the thread may compute, since lanes need the interpreter, too."""

_LONGEST_REST = 120.0
"""Seconds that it rests at most: most of a longer round was waiting for a model."""

_FEW = 1_000
"""While an instance has more events to apply, it catches up, and nothing is derived."""

_END_SECONDS = 2.0


class DerivingThread:
    """Derives on a separate thread, until told to stop.

    Args:
        worker: the id of this worker.
        rng: makes the jitter of what is sent.
        crash: named places to die at.
        served: returns the instances that recalls ask here.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        worker: str,
        rng: random.Random,
        crash: CrashPoint,
        served: Callable[[], Collection[str]],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._served = served
        self._provider = deriving_provider(settings) if settings.derive_every_turns else ""
        self._deriving = DerivingTurn(settings, clock, worker, rng, crash, self._provider)
        self._failing = RateLimitedWarning("nothing is derived: %s", clock)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memorybus-deriver", daemon=True)

    def start(self) -> None:
        """Start the thread, if the settings name derivers and an instance that keeps facts."""
        if self._settings.derivers and self._provider:
            self._thread.start()

    def stop(self) -> None:
        """End the thread; a deriver that hangs is abandoned, and its cause stays due."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            begun = self._clock.monotonic()
            settled = self._derive()
            rest = min((self._clock.monotonic() - begun) * (1 / _SHARE - 1), _LONGEST_REST)
            pause = rest if settled >= MAX_DUE else max(ROUND_SECONDS, rest)
        self._deriving.close()

    def _derive(self) -> int:
        try:
            return self._deriving.run() if self._provider in self._served() else 0
        except (MemoryBusError, RedisError, OSError) as error:
            self._failing.warn(error)
        except Exception as error:  # the thread must outlive any mistake
            self._failing.warn(error, error)
        return 0


class DerivingTurn:
    """Derives what is due at one provider, whenever it is called. Belongs to one thread.

    One worker derives at a time: two would lead to the same events, but ask a model twice.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        worker: str,
        rng: random.Random,
        crash: CrashPoint,
        provider: str,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._provider = provider
        self._sending = SendingContext(settings, clock, rng, new_id, crash)
        self._redis = connect_redis(settings)
        waits = 2 * settings.model.timeout if settings.model.base_url else 0.0
        key, seconds = Keys(settings.namespace).deriving(provider), settings.lease + waits
        self._turn = ExpiringLock(self._redis, key, worker.encode(), round(seconds * 1000))

    def run(self) -> int:
        """Derive what is due, unless the provider catches up or another worker derives.

        Returns:
            How many causes were settled.

        Raises:
            ProviderError: the store cannot be used now.
            MissingProvider: a deriver is not installed.
            LogUnavailable, redis.RedisError: Redis is away.
            SpoolError: nothing can be published.
        """
        instances = LiveInstances(self._settings, self._clock, self._redis, self._provider)
        serving = instances.find_serving(self._provider)
        lanes = LaneKeys(self._redis, self._settings).states(serving)
        if sum(lane.backlog for lane in lanes) > _FEW or not self._turn.keep():
            return 0
        try:
            with instances.visit(serving) as store:
                return self._round.run(store) if isinstance(store, FactProvider) else 0
        finally:
            self._turn.end()

    def close(self) -> None:
        """Send what Redis takes, and close the spool; unsent events stay in it."""
        if "_publisher" in vars(self):
            self._publisher.close(_END_SECONDS)
        self._redis.close()

    @cached_property
    def _publisher(self) -> Publisher:
        return Publisher(self._sending, Tracing(self._settings.namespace), lambda: None)

    @cached_property
    def _round(self) -> DerivingRound:
        means = Means(self._open_model, escape)
        derivers = [load_deriver(name, means) for name in self._settings.derivers]
        crash = self._sending.crash
        return DerivingRound(derivers, self._publisher, self._turn, crash, self._clock)

    def _open_model(self) -> ChatModel[Reservation]:
        model = open_model(
            self._settings, self._redis, self._clock, self._sending.rng, self._turn.keep
        )
        if model is None:
            raise ConfigError("a deriver needs a model, and the setting model has no base_url")
        return model
