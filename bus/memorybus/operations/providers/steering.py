"""``memorybus provider set|retry-now``: what workers do with a provider, changed while they run."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.dead_letters.requests import LetterRequest
from memorybus.errors import ConfigError
from memorybus.health.monitor import read_status
from memorybus.health.providers import ProviderStatus
from memorybus.ids import NewId, new_id
from memorybus.operations.dead_letters import selection
from memorybus.operations.known_providers import check_provider
from memorybus.operations.providers.lifecycle import served_by
from memorybus.operations.stores import Stores
from memorybus.registry.steering import RetryWish, Tuned, Tuning


class LimitsChange(msgspec.Struct, frozen=True):
    """Limits of a provider's calls that would hold, or hold now.

    Attributes:
        name: the provider.
        configured: what the settings of this command say; 0 is no bound.
        before: what held instead of that.
        after: what holds instead of it now.
        executed: whether it was done.
    """

    name: str
    configured: dict[str, float]
    before: dict[str, float]
    after: dict[str, float]
    executed: bool = False


def limits_change(
    stores: Stores, name: str, changes: Mapping[str, Any], *, reset: bool = False
) -> LimitsChange:
    """Return what other limits would mean; change nothing.

    Args:
        stores: of the log.
        name: the provider.
        changes: limits by name; "" for that of the settings.
        reset: whether all are those of the settings again.

    Raises:
        ConfigError: nobody knows the provider, it makes no calls that are bounded, or there is no
            such limit.
        LogUnavailable: Redis is away.
    """
    check_provider(stores, name)
    info = stores.roster.providers().get(name)
    if info is not None and info.delivery == "transactional":
        raise ConfigError(f"{name} is transactional: it calls no service, and has no limits to set")
    before = stores.steering.tuned().get(name, Tuned()).tuning
    asked: dict[str, Any] = {} if reset else {**before.given, **changes}
    after = _tuning({key: value for key, value in asked.items() if value != ""})
    settings = stores.settings
    configured = msgspec.structs.asdict(settings.provider_limits(name))
    return LimitsChange(
        name, {"concurrency": settings.concurrency} | configured, before.given, after.given
    )


def _tuning(asked: Mapping[str, Any]) -> Tuning:
    try:
        return msgspec.convert(asked, Tuning)
    except msgspec.ValidationError as error:
        known = ", ".join(Tuning.__struct_fields__)
        raise ConfigError(f"{error}; what can be set is {known}: a number, or nothing") from error


def set_limits(
    stores: Stores, what: LimitsChange, reason: str, by: str, clock: Clock = SYSTEM
) -> LimitsChange:
    """Let other limits hold, until somebody changes them again; workers obey within a heartbeat.

    Raises:
        LogUnavailable: Redis is away.
    """
    tuning = _tuning(what.after)
    stores.steering.tune(what.name, Tuned(tuning, reason, by, clock.now_ms()))
    return msgspec.structs.replace(what, executed=True)


class RetryNow(msgspec.Struct, frozen=True):
    """What waits for another try of an instance.

    Attributes:
        name: the instance.
        serves: the provider that was named, if the instance is a generation that serves it.
        failing: how its calls fail; "" if they do not.
        backlog: events that wait for it.
        parked: dead letters that are applied again, too; 0 if that was not asked for.
        workers: how many workers serve it now.
        executed: whether it was done.
    """

    name: str
    serves: str
    failing: str
    backlog: int
    parked: int
    workers: int
    executed: bool = False


def retry_plan(stores: Stores, name: str, *, parked: bool) -> RetryNow:
    """Return what would be tried again at once; change nothing.

    Raises:
        ConfigError: nobody knows the instance.
        LogUnavailable: Redis is away.
    """
    live = served_by(stores, name)
    found = read_status(stores.settings)
    status = next(one for one in (*found.providers, *found.copies) if _is(one, live))
    workers = [one for one in stores.roster.alive() if live in one.providers]
    return RetryNow(
        name=live,
        serves=name if name != live else "",
        failing=status.failing,
        backlog=status.backlog,
        parked=len(_letters(stores, live)) if parked else 0,
        workers=len(workers),
    )


def _is(status: ProviderStatus, instance: str) -> bool:
    return (status.live or status.name) == instance


def retry_now(
    stores: Stores, what: RetryNow, by: str, *, clock: Clock = SYSTEM, ids: NewId = new_id
) -> RetryNow:
    """Let workers go on at once with what waits for another try; with dead letters, if planned.

    Twice is as good as once: a try that is under way goes on.

    Raises:
        LogUnavailable: Redis is away.
        TooManyRequests: more dead letters than may be asked for at once.
    """
    stores.steering.retry(what.name, RetryWish(ids(), by, clock.now_ms()))
    if what.parked:
        decision = selection.OperatorDecision("retry", "", by, clock.now_ms(), {})
        requests = selection.requests(decision, _letters(stores, what.name), ids)
        _send(stores, what.name, [request for _, request in requests])
    return msgspec.structs.replace(what, executed=True)


def _letters(stores: Stores, instance: str) -> list[LocatedLetter]:
    with closing(DeadLetters(stores.settings)) as desk:
        return desk.letters([instance])


def _send(stores: Stores, instance: str, requests: Sequence[LetterRequest]) -> None:
    with closing(DeadLetters(stores.settings)) as desk:
        desk.send(instance, requests)
