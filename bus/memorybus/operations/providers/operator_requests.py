"""``memorybus provider set|retry-now``: changes limits and retries while workers run."""

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
from memorybus.msgspec_types import prepared
from memorybus.operations.dead_letters import selection
from memorybus.operations.known_providers import check_provider
from memorybus.operations.providers.lifecycle import resolve_instance
from memorybus.operations.stores import Stores
from memorybus.registry.operator_requests import RetryRequest, Tuned, Tuning


class LimitsChange(msgspec.Struct, frozen=True):
    """A change of the limits of a provider's calls.

    Attributes:
        name: the provider.
        configured: the limits in the settings of this command; 0 is no limit.
        before: the limits that overrode these until now.
        after: the limits that override them from now on.
        executed: whether it was done, not only planned.
    """

    name: str
    configured: dict[str, float]
    before: dict[str, float]
    after: dict[str, float]
    executed: bool = False


def plan_limits(
    stores: Stores, name: str, changes: Mapping[str, Any], *, reset: bool = False
) -> LimitsChange:
    """Return what a change of limits would do; change nothing.

    Args:
        stores: the stores.
        name: the provider.
        changes: limits by name; "" returns to the limit of the settings.
        reset: whether all limits return to those of the settings.

    Raises:
        ConfigError: the provider is unknown, its calls have no limits, or there is no such limit.
        LogUnavailable: Redis is away.
    """
    check_provider(stores, name)
    info = stores.roster.providers().get(name)
    if info is not None and info.delivery == "transactional":
        raise ConfigError(f"{name} is transactional: it calls no service, and has no limits to set")
    before = stores.operator_requests.tuned().get(name, Tuned()).tuning
    asked: dict[str, Any] = {} if reset else {**before.given, **changes}
    after = _parse_tuning({key: value for key, value in asked.items() if value != ""})
    settings = stores.settings
    configured = msgspec.structs.asdict(settings.provider_limits(name))
    return LimitsChange(
        name, {"concurrency": settings.concurrency} | configured, before.given, after.given
    )


def _parse_tuning(asked: Mapping[str, Any]) -> Tuning:
    try:
        return msgspec.convert(asked, prepared(Tuning))
    except msgspec.ValidationError as error:
        known = ", ".join(Tuning.__struct_fields__)
        raise ConfigError(f"{error}; what can be set is {known}: a number, or nothing") from error


def set_limits(
    stores: Stores, what: LimitsChange, reason: str, by: str, clock: Clock = SYSTEM
) -> LimitsChange:
    """Change the limits until they are changed again; workers obey within a heartbeat.

    Raises:
        LogUnavailable: Redis is away.
    """
    tuning = _parse_tuning(what.after)
    stores.operator_requests.tune(what.name, Tuned(tuning, reason, by, clock.now_ms()))
    return msgspec.structs.replace(what, executed=True)


class RetryNow(msgspec.Struct, frozen=True):
    """A retry of everything that waits for another try at an instance.

    Attributes:
        name: the instance.
        serves: the provider that was named, if the instance is a generation that serves it.
        failing: how its calls fail; "" if they do not.
        backlog: how many events wait for it.
        parked: how many dead letters are applied again, too; 0 if that was not asked for.
        workers: how many workers serve it now.
        executed: whether it was done, not only planned.
    """

    name: str
    serves: str
    failing: str
    backlog: int
    parked: int
    workers: int
    executed: bool = False


def plan_retry(stores: Stores, name: str, *, parked: bool) -> RetryNow:
    """Return what `retry_now` would do; change nothing.

    Raises:
        ConfigError: the instance is unknown.
        LogUnavailable: Redis is away.
    """
    live = resolve_instance(stores, name)
    found = read_status(stores.settings)
    status = next(one for one in (*found.providers, *found.copies) if _is_status_of(one, live))
    workers = [one for one in stores.roster.alive() if live in one.providers]
    return RetryNow(
        name=live,
        serves=name if name != live else "",
        failing=status.failing,
        backlog=status.backlog,
        parked=len(_letters_of(stores, live)) if parked else 0,
        workers=len(workers),
    )


def _is_status_of(status: ProviderStatus, instance: str) -> bool:
    return (status.live or status.name) == instance


def retry_now(
    stores: Stores, what: RetryNow, by: str, *, clock: Clock = SYSTEM, ids: NewId = new_id
) -> RetryNow:
    """Let workers try at once what waits for another try, and dead letters if that is planned.

    This may be repeated: it does not interrupt a try that is running.

    Raises:
        LogUnavailable: Redis is away.
        TooManyRequests: there are more dead letters than may be requested at once.
    """
    stores.operator_requests.retry(what.name, RetryRequest(ids(), by, clock.now_ms()))
    if what.parked:
        decision = selection.OperatorDecision("retry", "", by, clock.now_ms(), {})
        requests = selection.build_requests(decision, _letters_of(stores, what.name), ids)
        _send_requests(stores, what.name, [request for _, request in requests])
    return msgspec.structs.replace(what, executed=True)


def _letters_of(stores: Stores, instance: str) -> list[LocatedLetter]:
    with closing(DeadLetters(stores.settings)) as desk:
        return desk.letters([instance])


def _send_requests(stores: Stores, instance: str, requests: Sequence[LetterRequest]) -> None:
    with closing(DeadLetters(stores.settings)) as desk:
        desk.send(instance, requests)
