"""Opens the model of the settings, behind a gate that all workers share (G10)."""

import random
from collections.abc import Callable

import msgspec
from memorybus.clock import Clock
from memorybus.config.model_settings import ModelSettings
from memorybus.config.settings import Settings
from memorybus.errors import Permanent, ProviderError, Unavailable
from memorybus.ids import text_digest
from memorybus.msgspec_types import prepared
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus_providers.deriving.model import BudgetSpent, ChatModel, ModelEndpoint
from memorybus_providers.remote.options import key_of
from redis import Redis, RedisError

from memorybus_workers.calls.breaker import Breaker


class Reservation(msgspec.Struct, frozen=True):
    """A call that was let through."""

    person: str
    tokens: int
    reserved: scripts.TokenReservation


class ModelGate:
    """Keeps the budgets in Redis, and holds calls back while the service is down.

    Belongs to one thread. A reservation that a killed worker leaves behind stays counted.

    Args:
        keep: prolongs the lock of whoever asks; returns False if another worker has it.
    """

    def __init__(
        self,
        redis: Redis,
        keys: Keys,
        settings: ModelSettings,
        clock: Clock,
        rng: random.Random,
        keep: Callable[[], bool],
    ) -> None:
        self._keep = keep
        self._redis, self._keys, self._settings, self._clock = redis, keys, settings, clock
        self._breaker = Breaker(rng)

    def reserve(self, person: str, tokens: int) -> Reservation:
        """Count a call and the most tokens that it may use.

        Raises:
            BudgetSpent: a limit is reached.
            Unavailable: calls are held back, or Redis is away.
        """
        if not self._breaker.admit(self._clock.monotonic()):
            raise Unavailable(f"the model is not asked for a while: {self._breaker.why}")
        try:
            return Reservation(person, tokens, self._reserved(person, tokens))
        except Unavailable:
            self._breaker.release_probe()
            raise

    def _reserved(self, person: str, tokens: int) -> scripts.TokenReservation:
        limits = self._settings.limits
        call = scripts.reserve_tokens(self._account(person), tokens, [most for _, most in limits])
        try:
            if not self._keep():
                raise Unavailable("another worker asks the model")
            reserved = scripts.run(self._redis, call)
        except RedisError as error:
            raise Unavailable(f"the model's budget cannot be read: {error}") from error
        if reserved.refused:
            name, most = limits[reserved.refused - 1]
            raise BudgetSpent(f"the model's budget is spent: {name} is {most}")
        return reserved

    def settle(
        self, reservation: Reservation, used: int | None, failure: ProviderError | None
    ) -> None:
        """Note how a call ended; what Redis does not take stays counted as it was reserved."""
        self._judge(failure)
        more = 0 if used is None else used - reservation.tokens
        why = "" if failure is None or isinstance(failure, Permanent) else str(failure)
        self._write(reservation.person, reservation.reserved, more, why=why)

    def note_unreadable(self, person: str) -> None:
        """Count an answer that was left since it did not fit the schema."""
        self._write(person, scripts.TokenReservation(0), 0, unreadable=True)

    def _judge(self, failure: ProviderError | None) -> None:
        now = self._clock.monotonic()
        if isinstance(failure, Unavailable):
            self._breaker.note_failure(now, str(failure))
        elif failure is None or isinstance(failure, Permanent):
            self._breaker.note_success()
        else:
            self._breaker.note_strike(now, str(failure))

    def _write(
        self,
        person: str,
        reserved: scripts.TokenReservation,
        more: int,
        *,
        unreadable: bool = False,
        why: str = "",
    ) -> None:
        account = self._account(person)
        call = scripts.settle_tokens(account, reserved, more, unreadable=unreadable, why=why)
        try:
            scripts.run(self._redis, call)
        except RedisError as error:
            raise Unavailable(f"the model's budget cannot be written: {error}") from error

    def _account(self, person: str) -> scripts.ModelAccount:
        return scripts.ModelAccount(self._keys.model, text_digest(person))


def open_model(
    settings: Settings,
    redis: Redis,
    clock: Clock,
    rng: random.Random,
    keep: Callable[[], bool] = lambda: True,
) -> ChatModel[Reservation] | None:
    """Return the model of the settings; None if they name none. Nothing is requested yet.

    Args:
        keep: called before each request; see `ModelGate`.

    Raises:
        ConfigError: the variable or the file with its key is missing.
    """
    model = settings.model
    if not model.base_url:
        return None
    names = {"api_key_env": model.api_key_env, "api_key_file": model.api_key_file}
    key = key_of(names, "the setting model")
    gate = ModelGate(redis, Keys(settings.namespace), model, clock, rng, keep)
    endpoint = msgspec.convert(model, prepared(ModelEndpoint), from_attributes=True)
    return ChatModel(endpoint, key, gate, clock)
